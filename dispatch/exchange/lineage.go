package exchange

// An agent that asks for something while it works makes a child of its task
// (AINL-01). That has limits, so that it has an end.
