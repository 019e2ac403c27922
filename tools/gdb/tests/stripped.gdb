info waitword
