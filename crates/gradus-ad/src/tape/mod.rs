//! The tape: what a forward sweep leaves for its return sweep.
//!
//! [`plan`] decides what is kept and where, [`layout`] reads and writes it, [`stack`] is the
//! memory of what cannot be sized beforehand, [`pages`] what it asks of the system, [`mincut`] the algorithm behind the decision, [`mark`]
//! what tells the tapes apart that go through a program's own hands.

pub mod layout;
pub mod mark;
pub mod mincut;
pub mod pages;
pub mod plan;
pub mod stack;
