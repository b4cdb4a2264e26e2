//! GPU performance monitoring.

use std::ffi::CStr;
use std::fmt::Write as _;

use nvml_wrapper_sys::bindings::{
    nvmlGpmMetric_t, nvmlGpmMetric_t__bindgen_ty_1, nvmlGpmSupport_t,
};

use crate::call::{Function, On, change_device, device_api, system_api};
use crate::code::{
    ARGUMENT_VERSION_MISMATCH, Answer, Code, INVALID_ARGUMENT, NOT_SUPPORTED, SUCCESS,
};
use crate::ffi::{Argument, Handle, Out};
use crate::gpm::Sample;
use crate::handle::{Kind, Target};
use crate::model::{Model, NvLink};
use crate::world::World;

/// What comes before the metrics in an `nvmlGpmMetricsGet_t`. How many metrics fit differs from
/// header to header, so only those that the caller announces are touched.
#[repr(C)]
#[derive(Clone, Copy)]
struct Request {
    version: u32,
    count: u32,
    first: Handle,
    second: Handle,
}

/// The request as the trace shows it: both samples, then the metrics.
#[repr(transparent)]
struct Asked(Out<Request>);

impl Argument for Asked {
    fn missing(&self) -> bool {
        self.0.missing()
    }

    fn show(&self, line: &mut String) {
        let Ok(head) = self.0.get() else { return };
        head.first.show(line);
        head.second.show(line);
        let metrics = self.0.tail::<nvmlGpmMetric_t>();
        for i in 0..head.count as usize {
            let Ok(metric) = metrics.at(i) else { return };
            let _ = write!(line, "{}{}", if i == 0 { " " } else { "," }, metric.metricId);
        }
    }
}

/// How a metric follows the load.
enum Metric {
    /// Percent at full load.
    Percent(f64),
    /// Bytes per second at full load.
    Rate(f64),
    /// Grows by so much in a second of full load, since the driver was loaded.
    Count(f64),
    /// Grows by so much in any second.
    Elapsed(f64),
}

/// The driver branch that brought the metrics that count.
const COUNTS_SINCE: u32 = 590;

/// The driver branch that brought the metrics of caches, and their architecture, Blackwell.
const CACHES_SINCE: (u32, u32) = (575, 10);

/// A metric of a GPU, or of one of its instances.
fn metric(model: &Model, (media, branch): (bool, u32), part: bool, id: u32) -> Answer<Metric> {
    let cycles = f64::from(model.clocks.max) * 1e6;
    let counts = branch >= COUNTS_SINCE && !part;
    let caches = branch >= CACHES_SINCE.0 && model.architecture >= CACHES_SINCE.1 && !part;
    let sm = |share: f64| Ok(Metric::Count(share * cycles));
    let engine = |share| Ok(Metric::Percent(if media { share } else { 0.0 }));
    let links = model.nvlink.as_ref().filter(|_| !part);
    let link_rate = links.map_or(0.0, NvLink::rate);
    let link_count = links.map_or(0, |n| n.links);
    let percent = |share| Ok(Metric::Percent(share));
    match id {
        1 => percent(99.0),
        2 => percent(91.0),
        3 => percent(42.0),
        4 => percent(13.0),
        5 => percent(58.0),
        6 | 8 => percent(0.0),
        7 => percent(55.0),
        9 => percent(2.0),
        10 => percent(63.0),
        11 => percent(1.5),
        12 => percent(17.0),
        13 => percent(9.0),
        20 if !part => Ok(Metric::Rate(model.pcie.rates().0)),
        21 if !part => Ok(Metric::Rate(model.pcie.rates().1)),
        30..=36 => engine(80.0),
        40..=46 => engine(40.0),
        50 => engine(10.0),
        60 | 61 if link_count > 0 => Ok(Metric::Rate(link_rate * f64::from(link_count))),
        62..=97 if (id - 62) / 2 < link_count => Ok(Metric::Rate(link_rate)),
        212..=247 if 18 + (id - 212) / 2 < link_count => Ok(Metric::Rate(link_rate)),
        100..=103 if model.c2c.is_some() && !part => Ok(Metric::Rate(60e9)),
        160 | 162 if caches => percent(70.0),
        161 | 163 if caches => percent(30.0),
        248 if counts => Ok(Metric::Elapsed(cycles)),
        249 if counts => sm(0.91),
        250 if counts => sm(0.58),
        251 | 254 if counts => sm(0.0),
        252 if counts => sm(0.55),
        253 if counts => sm(0.02),
        255 if counts => Ok(Metric::Count(model.pcie.rates().0)),
        256 if counts => Ok(Metric::Count(model.pcie.rates().1)),
        257 if counts => sm(0.13),
        258 if counts => sm(0.015),
        259 if counts => sm(0.17),
        260 if counts => sm(0.09),
        _ => Err(NOT_SUPPORTED),
    }
}

/// The names of a metric: short, long, unit.
fn names(id: u32) -> [&'static CStr; 3] {
    match id {
        1 => [c"GRACT", c"Graphics Activity", c"%"],
        2 => [c"SMACT", c"SM Activity", c"%"],
        3 => [c"SMOCC", c"SM Occupancy", c"%"],
        4 => [c"INTACT", c"Integer Activity", c"%"],
        5 => [c"TENACT", c"Tensor Activity", c"%"],
        6 => [c"DFMAACT", c"DFMA Tensor Activity", c"%"],
        7 => [c"HMMAACT", c"HMMA Tensor Activity", c"%"],
        9 => [c"IMMAACT", c"IMMA Tensor Activity", c"%"],
        10 => [c"DRAMA", c"DRAM Activity", c"%"],
        11 => [c"FP64A", c"FP64 Activity", c"%"],
        12 => [c"FP32A", c"FP32 Activity", c"%"],
        13 => [c"FP16A", c"FP16 Activity", c"%"],
        20 => [c"PCITX", c"PCIe Transmit", c"MiB/s"],
        21 => [c"PCIRX", c"PCIe Receive", c"MiB/s"],
        30..=37 => [c"NVDEC", c"NVDEC Utilization", c"%"],
        40..=47 => [c"NVJPG", c"NVJPG Utilization", c"%"],
        50 | 51 => [c"NVOFA", c"NVOFA Utilization", c"%"],
        60 => [c"NVTRX", c"NVLink Total Receive", c"MiB/s"],
        61 => [c"NVTTX", c"NVLink Total Transmit", c"MiB/s"],
        62..=97 | 212..=247 if id.is_multiple_of(2) => [c"NVLRX", c"NVLink Receive", c"MiB/s"],
        62..=97 | 212..=247 => [c"NVLTX", c"NVLink Transmit", c"MiB/s"],
        100..=103 => [c"C2C", c"C2C Throughput", c"MiB/s"],
        160..=163 => [c"CACHE", c"Cache Hits and Misses", c"%"],
        248..=254 | 257..=260 => [c"CYCLES", c"Cycles", c"cycles"],
        255 | 256 => [c"PCIBYTES", c"PCIe Data", c"B"],
        _ => [c"", c"", c""],
    }
}

/// The load between two samples. At a frozen clock both lie at one moment.
fn mean_load(world: &World, first: &Sample, second: &Sample) -> f64 {
    let time = second.time - first.time;
    if time.abs() > 1e-9 {
        return (second.busy_seconds - first.busy_seconds) / time;
    }
    let gpu = &world.gpus[second.gpu];
    gpu.load(second.gi.and_then(|id| gpu.instance(id)), second.time)
}

fn answer(world: &World, request: &Request, id: u32) -> Answer<f64> {
    let (first, second) = (world.samples.get(request.first)?, world.samples.get(request.second)?);
    let gpu = &world.gpus[second.gpu];
    let load = mean_load(world, &first, &second).clamp(0.0, 1.0);
    let model = &world.models[gpu.model];
    let refreshed = second.is_refreshed(&first);
    Ok(match metric(model, (gpu.media, world.branch()), second.gi.is_some(), id)? {
        // Nothing has been counted in between, of time neither.
        Metric::Percent(_) if !refreshed => f64::NAN,
        Metric::Rate(_) if !refreshed => 0.0,
        Metric::Percent(share) => share * load,
        Metric::Rate(bytes) => bytes * load / f64::from(1 << 20),
        Metric::Count(speed) => speed * second.busy_seconds,
        Metric::Elapsed(speed) => speed * second.time,
    })
}

fn take(world: &mut World, target: Target, gi: Option<u32>, sample: Handle) -> Answer {
    let gpu = &world.gpus[target.gpu];
    if !world.models[gpu.model].gpm() {
        return Err(NOT_SUPPORTED);
    }
    let instance = gi.map(|id| gpu.instance(id).ok_or(INVALID_ARGUMENT)).transpose()?;
    let time = world.now();
    let busy_seconds = gpu.busy_seconds(instance, time);
    let taken = crate::load::millis();
    world.samples.store(sample, Sample { gpu: target.gpu, gi, time, taken, busy_seconds })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpmSampleGet(handle: Handle, sample: Handle) -> Code {
    static FUNCTION: Function = Function { name: "nvmlGpmSampleGet", on: On::Any };
    change_device(&FUNCTION, handle, &[&sample], &mut |world, target| {
        let gi = (target.kind == Kind::Mig).then_some(target.gi);
        take(world, target, gi, sample)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpmMigSampleGet(handle: Handle, gi: u32, sample: Handle) -> Code {
    static FUNCTION: Function = Function { name: "nvmlGpmMigSampleGet", on: On::Gpu };
    change_device(&FUNCTION, handle, &[&gi, &sample], &mut |world, target| {
        take(world, target, Some(gi), sample)
    })
}

device_api! {
    Any nvmlGpmQueryDeviceSupport(device, support: Out<nvmlGpmSupport_t>) {
        let mut value = support.get()?;
        if value.version != 1 {
            return Err(ARGUMENT_VERSION_MISMATCH);
        }
        value.isSupportedDevice = u32::from(device.model.gpm());
        support.put(value)
    }

    Gpu nvmlGpmQueryIfStreamingEnabled(device, state: Out<u32>) {
        if !device.model.gpm() {
            return Err(NOT_SUPPORTED);
        }
        state.put(1)
    }
}

system_api! {
    nvmlGpmSampleAlloc(world, sample: Out<Handle>) {
        let handle = world.samples.allocate();
        sample.put(handle)
    }

    nvmlGpmSampleFree(world, sample: Handle) { world.samples.free(sample) }

    nvmlGpmMetricsGet(world, request: Asked) {
        let request = request.0;
        let head = request.get()?;
        if head.version != 1 {
            return Err(ARGUMENT_VERSION_MISMATCH);
        }
        let (first, second) = (world.samples.get(head.first)?, world.samples.get(head.second)?);
        if (first.gpu, first.gi) != (second.gpu, second.gi) {
            return Err(INVALID_ARGUMENT);
        }
        let metrics = request.tail::<nvmlGpmMetric_t>();
        for i in 0..head.count as usize {
            let mut metric = metrics.at(i)?;
            let forced = world.faults.metric(second.gpu, metric.metricId);
            match forced.unwrap_or_else(|| answer(world, &head, metric.metricId)) {
                Ok(value) => {
                    metric.nvmlReturn = SUCCESS;
                    metric.value = value;
                }
                Err(code) => metric.nvmlReturn = code,
            }
            let [short, long, unit] = names(metric.metricId).map(|n| n.as_ptr().cast_mut());
            metric.metricInfo = nvmlGpmMetric_t__bindgen_ty_1 {
                shortName: short, longName: long, unit,
            };
            metrics.set(i, metric)?;
        }
        Ok(())
    }
}
