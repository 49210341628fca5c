"""The importers: from a framework's own graph to a module. Each is one short loop over the graph's nodes and a table of
rules, filed by op family; `common` contains the loop and the table, `emit` the vocabulary in which rules are
written."""
