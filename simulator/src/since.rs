//! Which driver brought which symbol.
//!
//! From the history of `nvml.h` as the CUDA toolkits shipped it. Symbols that are not listed are at
//! least as old as R450, the oldest driver the simulator imitates.

/// Symbols with the first driver branch that has them.
const SINCE: &[(&str, u32)] = &[];

/// Whether a driver of a branch lacks a symbol.
pub(crate) fn lacks(branch: u32, symbol: &str) -> bool {
    SINCE.iter().any(|(name, since)| *name == symbol && branch < *since)
}
