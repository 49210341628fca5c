"""Random programs: the interpreter against machine code. `generator` draws programs from families of ops, `tracking`
evaluates them with a bound of the error of each value, `runner` compiles them for every configuration and compares,
`shrinker` makes what fails small, and `cases` holds what was found."""
