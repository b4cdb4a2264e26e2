//! `test`: one command for all tests.

use crate::needs::{self, ALERTMANAGER, PROMETHEUS, PYTHON};
use crate::shell::{self, Outcome, cargo};

pub(crate) fn run(arguments: &[String]) -> Outcome {
    needs::packages(&[PROMETHEUS, ALERTMANAGER, PYTHON])?;
    needs::python_packages()?;
    // The simulator's library first: the tests load it, and cargo does not know that.
    shell::run(&mut cargo(&["build", "--workspace"]))?;
    // The black-box tests wait for processes most of the time.
    let mut tests = cargo(&["test", "--workspace", "--no-fail-fast"]);
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        tests.env("RUST_TEST_THREADS", "5");
    }
    shell::run(tests.args(arguments))
}
