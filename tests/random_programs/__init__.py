"""Random programs: the interpreter compared with machine code. `generator` draws programs from families of ops,
`tracking` evaluates them with an error bound for each value, `runner` compiles them for every configuration and
compares the results, `shrinker` reduces programs that fail, and `cases` holds earlier findings."""
