//! Random numbers: cuRAND's generators, skip-ahead for kernels, and the host interface.

mod dealt;
mod host;
mod mrg32k3a;
mod philox;
mod xorwow;
