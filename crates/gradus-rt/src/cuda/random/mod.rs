//! Random numbers: cuRAND's generators, skip-ahead for kernels, and the host interface.

mod host;
mod host_order;
mod mrg32k3a;
mod philox;
mod xorwow;
