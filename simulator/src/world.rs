//! The machine that the library pretends to run on, and the one place where its state lives.
//!
//! A shared library has no other place for state than a global. It is behind one lock, which is
//! held for the microsecond a call takes, never while a call is made to wait.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Clock;
use crate::code::{
    Answer, Code, DRIVER_NOT_LOADED, GPU_IS_LOST, IN_USE, INVALID_ARGUMENT,
    LIB_RM_VERSION_MISMATCH, UNINITIALIZED, UNKNOWN,
};
use crate::control::Control;
use crate::events::EventSets;
use crate::fault::Faults;
use crate::ffi::Handle;
use crate::gpm::Samples;
use crate::gpu::Gpu;
use crate::grammar::{ClockChange, Command, DriverChange, GpuChange, Which};
use crate::handle::{Kind, Target};
use crate::mig;
use crate::model::Model;
use crate::note::complain;
use crate::scenario::{self, Error, Scenario, version_numbers};
use crate::{account, since, symbols};

/// Settings from the environment, read when the library is loaded.
#[derive(Debug, Default, Clone)]
pub(crate) struct Environment {
    pub(crate) scenario: Option<String>,
    pub(crate) seed: Option<String>,
    pub(crate) clock: Option<String>,
    pub(crate) control: Option<String>,
    pub(crate) hide: Option<String>,
}

/// The driver.
#[derive(Debug)]
pub(crate) struct DriverState {
    pub(crate) version: String,
    pub(crate) cuda: String,
    pub(crate) persistence: bool,
    pub(crate) loaded: bool,
    pub(crate) mismatch: bool,
}

/// Everything.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) driver: DriverState,
    pub(crate) clock: Clock,
    pub(crate) models: Vec<Model>,
    pub(crate) gpus: Vec<Gpu>,
    pub(crate) faults: Faults,
    /// How many `nvmlInit` have not been matched by `nvmlShutdown`.
    pub(crate) sessions: u32,
    pub(crate) events: EventSets,
    pub(crate) samples: Samples,
    /// Symbols that are missing beyond those the driver version lacks.
    hidden: Vec<String>,
    control: Control,
}

#[derive(Debug)]
enum State {
    /// Not yet built: the library is not loaded as a library, or only just.
    Unset,
    Ready(Box<World>),
    /// The scenario cannot be played; whatever is called returns the code.
    Broken(Code),
    /// The library is being unloaded.
    Gone,
}

/// How often a waiting call looks at the control file.
const POLL: Duration = Duration::from_millis(3);

/// Tells waiting calls that a command has been carried out.
static CHANGED: Condvar = Condvar::new();

static STATE: Mutex<State> = Mutex::new(State::Unset);
static ENVIRONMENT: Mutex<Option<Environment>> = Mutex::new(None);

/// The world, locked.
pub(crate) struct Guard(MutexGuard<'static, State>);

impl Guard {
    /// Locks the world, building it from the environment if nobody has.
    pub(crate) fn lock() -> Answer<Self> {
        let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, State::Unset) {
            build(&mut state, None);
        }
        match &*state {
            State::Ready(_) => Ok(Self(state)),
            State::Broken(code) => Err(*code),
            State::Unset | State::Gone => Err(UNINITIALIZED),
        }
    }

    /// Lets go of the lock until a command has been carried out, but not for long: a control file
    /// has to be looked at, and `at_most` is all the caller can spare.
    pub(crate) fn wait(self, at_most: Duration) -> Self {
        let polls = matches!(&*self.0, State::Ready(world) if world.control.has_file());
        let time = if polls { at_most.min(POLL) } else { at_most };
        let waited = CHANGED.wait_timeout(self.0, time).unwrap_or_else(PoisonError::into_inner);
        Self(waited.0)
    }

    /// The world behind the lock.
    pub(crate) fn world(&mut self) -> Answer<&mut World> {
        match &mut *self.0 {
            State::Ready(world) => Ok(world),
            State::Broken(code) => Err(*code),
            State::Unset | State::Gone => Err(UNINITIALIZED),
        }
    }
}

/// Remembers the environment and builds the world, so that missing symbols are missing from the
/// first lookup on.
pub(crate) fn load(environment: Environment) {
    *ENVIRONMENT.lock().unwrap_or_else(PoisonError::into_inner) = Some(environment);
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    build(&mut state, None);
}

/// Lets go of everything, files included.
pub(crate) fn unload() {
    *STATE.lock().unwrap_or_else(PoisonError::into_inner) = State::Gone;
    CHANGED.notify_all();
}

/// Changes the scenario; refused while a client has a session.
pub(crate) fn choose(name: &str) -> Code {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    if matches!(&*state, State::Ready(world) if world.sessions > 0) {
        return IN_USE;
    }
    build(&mut state, Some(name))
}

fn build(state: &mut State, name: Option<&str>) -> Code {
    let environment =
        ENVIRONMENT.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default();
    let name = name.or(environment.scenario.as_deref()).unwrap_or(scenario::DEFAULT);
    match World::new(name, &environment) {
        Ok(world) => {
            *state = State::Ready(Box::new(world));
            0
        }
        Err(error) => {
            complain(&error);
            let code = match error {
                Error::Unknown(_) => INVALID_ARGUMENT,
                Error::Wrong(_) => UNKNOWN,
            };
            // A wrong name in a call leaves what was there; nothing else is there at load.
            if matches!(error, Error::Wrong(_)) || matches!(state, State::Unset) {
                *state = State::Broken(UNKNOWN);
            }
            code
        }
    }
}

impl World {
    fn new(name: &str, environment: &Environment) -> Result<Self, Error> {
        let scenario = Scenario::load(name)?;
        let seed = match environment.seed.as_deref() {
            Some(text) if !text.is_empty() => text
                .parse()
                .map_err(|_| Error::Wrong(format!("NVML_SIM_SEED: not a number: {text}")))?,
            _ => scenario.seed,
        };
        let clock = Clock::from_setting(environment.clock.as_deref())
            .map_err(|e| Error::Wrong(format!("NVML_SIM_CLOCK: {e}")))?;
        let mut world = Self {
            driver: DriverState {
                version: scenario.driver.version.get_ref().clone(),
                cuda: scenario.driver.cuda.get_ref().clone(),
                persistence: scenario.driver.persistence,
                loaded: true,
                mismatch: false,
            },
            clock,
            models: Vec::new(),
            gpus: Vec::new(),
            faults: Faults::default(),
            sessions: 0,
            events: EventSets::default(),
            samples: Samples::default(),
            hidden: scenario.driver.hide.clone(),
            control: Control::new(environment.control.clone().filter(|c| !c.is_empty())),
        };
        world.add_gpus(&scenario, seed)?;
        let more = environment.hide.as_deref().unwrap_or_default().split(',');
        world.hidden.extend(more.map(|name| name.trim().to_owned()));
        world.hide_symbols();
        world.poll();
        Ok(world)
    }

    fn add_gpus(&mut self, scenario: &Scenario, seed: u64) -> Result<(), Error> {
        for gpus in &scenario.gpu {
            let mut model = scenario.model(gpus.model.get_ref()).map_err(Error::Wrong)?;
            model.unsupported.sort_unstable();
            let known = self.models.iter().position(|m| m.name == model.name);
            for nth in 0..gpus.count {
                let at = (nth, self.gpus.len(), known.unwrap_or(self.models.len()));
                let mut gpu = Gpu::new(scenario, gpus, at, seed);
                if let Some(list) = &gpus.mig {
                    let words: Vec<&str> = list.get_ref().iter().map(String::as_str).collect();
                    let table = model.mig.as_deref().unwrap_or_default();
                    gpu.divide(Some(mig::layout(table, &words).map_err(Error::Wrong)?));
                }
                self.gpus.push(gpu);
            }
            if known.is_none() {
                self.models.push(model);
            }
        }
        Ok(())
    }

    /// Scenario time.
    pub(crate) fn now(&self) -> f64 {
        self.clock.now()
    }

    /// The driver branch: 570 of 570.133.20.
    pub(crate) fn branch(&self) -> u32 {
        version_numbers(&self.driver.version).first().copied().unwrap_or(0)
    }

    /// Why nothing works, if nothing works.
    pub(crate) fn check_driver(&self) -> Answer {
        if self.driver.mismatch {
            Err(LIB_RM_VERSION_MISMATCH)
        } else if self.driver.loaded {
            Ok(())
        } else {
            Err(DRIVER_NOT_LOADED)
        }
    }

    /// Why a call cannot be answered, if it cannot.
    pub(crate) fn check_session(&self) -> Answer {
        if self.sessions == 0 {
            return Err(UNINITIALIZED);
        }
        if self.driver.mismatch {
            return Err(LIB_RM_VERSION_MISMATCH);
        }
        Ok(())
    }

    /// The GPUs that the driver has, in the order of their index.
    pub(crate) fn attached(&self) -> impl Iterator<Item = &Gpu> {
        self.gpus.iter().filter(|g| g.attached)
    }

    /// Reads what the control file has to say.
    pub(crate) fn poll(&mut self) {
        for command in self.control.poll() {
            self.apply(command);
        }
    }

    /// Carries out a command.
    pub(crate) fn apply(&mut self, command: Command) {
        CHANGED.notify_all();
        match command {
            Command::Clock(ClockChange::Advance(seconds)) => self.clock.advance(seconds),
            Command::Clock(ClockChange::Set(seconds)) => self.clock.set(seconds),
            Command::Clock(ClockChange::Freeze(at)) => self.clock.freeze(at),
            Command::Clock(ClockChange::Run) => self.clock.run(),
            Command::Driver(change) => self.change_driver(change),
            Command::Fault(fault) => self.faults.add(fault),
            Command::ClearFault(fault) => self.faults.clear(&fault),
            Command::Gpu(Which::One(number), _) if number >= self.gpus.len() => {
                complain(format_args!("there is no GPU {number}; there are {}", self.gpus.len()));
            }
            Command::Gpu(Which::One(number), change) => self.change_gpu(number, &change),
            Command::Gpu(Which::All, change) => {
                for number in 0..self.gpus.len() {
                    self.change_gpu(number, &change);
                }
            }
        }
    }

    fn change_driver(&mut self, change: DriverChange) {
        match change {
            DriverChange::Unload => self.driver.loaded = false,
            DriverChange::Mismatch => self.driver.mismatch = true,
            DriverChange::Load(version) => {
                self.driver.loaded = true;
                self.driver.mismatch = false;
                if let Some(version) = version {
                    self.driver.version = version;
                }
            }
        }
        if self.driver.mismatch {
            return;
        }
        // The module went away under the clients: their sessions and handles are void.
        self.sessions = 0;
        self.forget_clients();
        self.hide_symbols();
        for gpu in &mut self.gpus {
            gpu.generation = gpu.generation.wrapping_add(1);
            gpu.mig_generation = gpu.mig_generation.wrapping_add(1);
            gpu.accounts = None;
        }
    }

    /// Drops what belongs to sessions.
    pub(crate) fn forget_clients(&mut self) {
        self.events = EventSets::default();
        self.samples = Samples::default();
        CHANGED.notify_all();
    }

    /// Hides the symbols that the driver lacks, and those that were asked for.
    fn hide_symbols(&self) {
        let branch = self.branch();
        symbols::hide(&|symbol| {
            since::lacks(branch, symbol) || self.hidden.iter().any(|h| h == symbol)
        });
    }

    fn change_gpu(&mut self, number: usize, change: &GpuChange) {
        let now = self.now();
        let gpu = &mut self.gpus[number];
        let model = &self.models[gpu.model];
        match change {
            GpuChange::Set(scope, key, value) => {
                gpu.change(model, now, |g| g.settings.set(*scope, *key, *value));
            }
            GpuChange::Add(scope, key, value) => {
                gpu.change(model, now, |g| g.settings.add(*scope, *key, *value));
            }
            GpuChange::Unset(scope, key) => {
                gpu.change(model, now, |g| g.settings.unset(*scope, *key));
            }
            GpuChange::Processes(gi, list) => {
                account::change(self, number, |gpu| gpu.put_processes(*gi, list.as_ref()));
            }
            GpuChange::Accounting(on) => account::switch(self, number, *on),
            GpuChange::Lost(lost) => gpu.lost = *lost,
            GpuChange::Attached(attached) => {
                gpu.attached = *attached;
                gpu.generation = gpu.generation.wrapping_add(1);
                gpu.mig_generation = gpu.mig_generation.wrapping_add(1);
            }
            GpuChange::Event { types, data, gi, ci } => {
                self.events.post(number, *types, *data, (*gi, *ci));
            }
            GpuChange::Mig(list) => {
                let table = model.mig.as_deref().unwrap_or_default();
                let words = list.as_ref().map(|l| l.iter().map(String::as_str).collect::<Vec<_>>());
                match words.map(|words| mig::layout(table, &words)).transpose() {
                    Ok(layout) => {
                        gpu.change(model, now, |g| g.divide(layout));
                        gpu.mig_generation = gpu.mig_generation.wrapping_add(1);
                        self.events.post(number, 0x100, 0, (None, None));
                    }
                    Err(message) => complain(format_args!("gpu {number} mig: {message}")),
                }
            }
        }
    }

    /// Finds what a device handle stands for.
    pub(crate) fn resolve(&self, handle: Handle) -> Answer<Target> {
        let target = Target::from_handle(handle).ok_or(INVALID_ARGUMENT)?;
        let gpu = self.gpus.get(target.gpu).filter(|g| g.attached).ok_or(INVALID_ARGUMENT)?;
        let generation =
            if target.kind == Kind::Device { gpu.generation } else { gpu.mig_generation };
        if target.generation != generation {
            return Err(INVALID_ARGUMENT);
        }
        if gpu.lost { Err(GPU_IS_LOST) } else { Ok(target) }
    }
}
