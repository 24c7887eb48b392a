//! From a control-flow graph to a tree of structured regions.
