//! Sessions, versions, and the simulator's own symbols.

use std::ffi::{CStr, c_char};
use std::fmt::Write as _;
use std::sync::OnceLock;

use crate::call::{bare, system_api};
use crate::code::{self, Answer, Code, DRIVER_NOT_LOADED, INVALID_ARGUMENT, UNINITIALIZED};
use crate::ffi::{In, Out, Text};
use crate::scenario::{self, version_numbers};
use crate::world::{self, World};

fn open_session(world: &mut World) -> Answer {
    world.check_driver()?;
    world.sessions += 1;
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInit() -> Code {
    bare("nvmlInit", &[], &mut open_session)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInit_v2() -> Code {
    bare("nvmlInit_v2", &[], &mut open_session)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInitWithFlags(flags: u32) -> Code {
    bare("nvmlInitWithFlags", &[&flags], &mut open_session)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlShutdown() -> Code {
    bare("nvmlShutdown", &[], &mut |world| {
        world.sessions = world.sessions.checked_sub(1).ok_or(UNINITIALIZED)?;
        if world.sessions == 0 {
            world.forget_clients();
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlErrorString(result: Code) -> *const c_char {
    code::text(result).as_ptr()
}

/// The CUDA version as NVML counts: 12080 for 12.8.
fn cuda_version(world: &World) -> i32 {
    let numbers = version_numbers(&world.driver.cuda);
    let part = |i: usize| numbers.get(i).copied().unwrap_or(0).cast_signed();
    part(0) * 1000 + part(1) * 10
}

system_api! {
    nvmlSystemGetDriverVersion(world, version: Text, length: u32) {
        version.put(length, &world.driver.version)
    }

    nvmlSystemGetNVMLVersion(world, version: Text, length: u32) {
        let cuda = version_numbers(&world.driver.cuda).first().copied().unwrap_or(0);
        version.put(length, &format!("{cuda}.{}", world.driver.version))
    }

    nvmlSystemGetCudaDriverVersion(world, version: Out<i32>) { version.put(cuda_version(world)) }

    nvmlSystemGetProcessName(_world, pid: u32, name: Text, length: u32) {
        let path = format!("/proc/{pid}/cmdline");
        let line = std::fs::read(path).map_err(|_| code::NOT_FOUND)?;
        let first = line.split(|b| *b == 0).next().unwrap_or_default();
        let mut text = String::from_utf8_lossy(first).into_owned();
        // The library cuts the name to fit.
        while text.len() >= length as usize {
            text.pop().ok_or(code::INSUFFICIENT_SIZE)?;
        }
        name.put(length, &text)
    }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlSystemGetCudaDriverVersion_v2(version: Out<i32>) -> Code {
    bare("nvmlSystemGetCudaDriverVersion_v2", &[&version], &mut |world| {
        world.check_driver().map_err(|_| DRIVER_NOT_LOADED)?;
        version.put(cuda_version(world))
    })
}

/// `int nvmlSimulatorSetScenario(const char *name_or_path)`: chooses what is played. To be called
/// before `nvmlInit`.
#[unsafe(no_mangle)]
extern "C" fn nvmlSimulatorSetScenario(name: In) -> Code {
    name.get().map_or_else(|code| code, world::choose)
}

/// `const char *nvmlSimulatorScenarios(void)`: the names of the built-in scenarios, one a line.
#[unsafe(no_mangle)]
extern "C" fn nvmlSimulatorScenarios() -> *const c_char {
    static NAMES: OnceLock<String> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let mut names = String::new();
        for (i, (name, _)) in scenario::BUILT_IN.iter().enumerate() {
            let _ = write!(names, "{}{name}", if i > 0 { "\n" } else { "" });
        }
        names.push('\0');
        names
    });
    CStr::from_bytes_until_nul(names.as_bytes()).unwrap_or(c"").as_ptr()
}

/// `int nvmlSimulatorControl(const char *command)`: one line of the control language, carried out
/// at once.
#[unsafe(no_mangle)]
extern "C" fn nvmlSimulatorControl(command: In) -> Code {
    let run = || {
        let line = command.get()?;
        match crate::grammar::parse(line) {
            Ok(command) => {
                let mut guard = world::Guard::lock()?;
                let world = guard.world()?;
                world.poll();
                if let Some(command) = command {
                    world.apply(command);
                }
                Ok(())
            }
            Err(message) => {
                crate::note::complain(format_args!("{line}: {message}"));
                Err(INVALID_ARGUMENT)
            }
        }
    };
    run().err().unwrap_or(code::SUCCESS)
}
