# As users get a release build: it has symbols, and no debug information.
info waitword
