//! `test`: one command for all tests.

use crate::needs::{self, PROMETHEUS, PYTHON};
use crate::shell::{self, Outcome, cargo};

pub(crate) fn run(arguments: &[String]) -> Outcome {
    needs::packages(&[PROMETHEUS, PYTHON])?;
    needs::python_packages()?;
    // The simulator's library first: the tests load it, and cargo does not know that.
    shell::run(&mut cargo(&["build", "--workspace"]))?;
    shell::run(cargo(&["test", "--workspace", "--no-fail-fast"]).args(arguments))
}
