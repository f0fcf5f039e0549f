"""A small real campaign from plan to decision, with nothing simulated: `oakledger demo`."""
