"""Hot swap: control messages in, generations built, switched and removed, all of it on record in the status topic."""
