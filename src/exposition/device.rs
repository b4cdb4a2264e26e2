//! The rows of the page that one GPU makes: itself, its MIG instances, its links; each in as many
//! copies as those who share it ask for.

use std::sync::Arc;

use super::labels::{Block, Further, Style};
use super::roster::Member;
use super::scheme::LabelScheme;
use super::sharing::{Set, Sets, Sharing};
use crate::attribution::DeviceKey;
use crate::catalogue::Selection;
use crate::sampler::snapshot::{Processes, Sample};

/// A GPU with a reading, its label blocks, and how far its samples are written.
#[derive(Debug)]
pub(super) struct Device<'a> {
    /// Whether the GPU itself is a row for DCGM-named families.
    pub(super) whole: bool,
    pub(super) labels: Labels<'a>,
    pub(super) board: Cursor<'a>,
    pub(super) texts: &'a [(u16, Arc<str>)],
    pub(super) processes: Option<&'a Processes>,
    /// By GPU instance id.
    pub(super) instances: Vec<Instance<'a>>,
    /// By NVML link number.
    links: Vec<(u8, Vec<Block<'a>>)>,
}

/// A MIG instance's label blocks and how far its samples are written.
#[derive(Debug)]
pub(super) struct Instance<'a> {
    /// GPU instance id.
    pub(super) id: u32,
    pub(super) labels: Labels<'a>,
    pub(super) samples: Cursor<'a>,
}

/// The label blocks of a GPU or an instance.
#[derive(Debug)]
pub(super) struct Labels<'a> {
    /// DCGM's families: one for each copy.
    copies: Vec<Block<'a>>,
    /// Our own families, which are not copied.
    own: Block<'a>,
    /// The whole device beside its sharers; only where series are divided by process.
    pub(super) whole: Option<Block<'a>>,
    /// Sharers by pod UID, with what each has of the device.
    pub(super) sharers: Vec<(&'a str, Block<'a>)>,
}

impl<'a> Labels<'a> {
    pub(super) fn new(
        sets: Sets<'a>,
        extras: &[(&'a str, &'a str)],
        block: impl Fn(Style, &Further<'a>) -> Block<'a>,
    ) -> Self {
        let further = |attributes: Set<'a>| Further { extras: extras.to_vec(), attributes };
        let dcgm = |set: Set<'a>| block(Style::Dcgm, &further(set));
        Self {
            own: block(Style::Own, &further(sets.common)),
            copies: sets.copies.into_iter().map(dcgm).collect(),
            whole: sets.split.then(|| dcgm(sets.whole)),
            sharers: sets.sharers.into_iter().map(|(uid, set)| (uid, dcgm(set))).collect(),
        }
    }

    /// The blocks of a family's rows.
    pub(super) fn of(&self, style: Style) -> &[Block<'a>] {
        match style {
            Style::Dcgm => &self.copies,
            Style::Own => std::slice::from_ref(&self.own),
        }
    }
}

impl<'a> Device<'a> {
    /// `None` for a GPU that is no row in any way.
    pub(super) fn new(
        member: &Member<'a>,
        selection: &'a Selection,
        sharing: &Sharing<'a>,
    ) -> Option<Self> {
        let scheme = &sharing.settings.labels;
        let (gpu, reading) = (member.identity, member.reading()?);
        if !reading.whole && reading.instances.is_empty() {
            return None;
        }
        let extras = extras(&reading.labels, selection);
        let whole = DeviceKey { gpu: gpu.index, instance: None };
        let mut links: Vec<u8> = reading.board.iter().filter_map(|sample| sample.link).collect();
        links.sort_unstable();
        links.dedup();
        Some(Self {
            whole: reading.whole,
            labels: Labels::new(sharing.sets(whole), &extras, |style, further| {
                Block::gpu(gpu, style, scheme, further)
            }),
            board: Cursor::new(&reading.board),
            texts: &reading.texts,
            processes: reading.processes.as_ref(),
            instances: member
                .instances
                .iter()
                .map(|instance| {
                    let id = instance.identity.gpu_instance;
                    let sets = sharing.sets(DeviceKey { instance: Some(id), ..whole });
                    let labels = Labels::new(sets, &extras, |style, further| {
                        Block::instance((gpu, &instance.identity), style, scheme, further)
                    });
                    Instance { id, labels, samples: Cursor::new(&instance.samples) }
                })
                .collect(),
            links: link_blocks(member, links, (sharing, &extras), scheme),
        })
    }

    /// The labels of a link, a block for each copy; none for a sample that names no link.
    pub(super) fn link(&self, link: Option<u8>) -> &[Block<'a>] {
        let at = link.map(|link| self.links.binary_search_by_key(&link, |(number, _)| *number));
        at.and_then(Result::ok).map_or(&[], |at| &self.links[at].1)
    }
}

fn link_blocks<'a>(
    member: &Member<'a>,
    links: Vec<u8>,
    (sharing, extras): (&Sharing<'a>, &[(&'a str, &'a str)]),
    scheme: &'a LabelScheme,
) -> Vec<(u8, Vec<Block<'a>>)> {
    if links.is_empty() {
        return Vec::new();
    }
    let gpu = member.identity;
    let sets = sharing.sets(DeviceKey { gpu: gpu.index, instance: None }).copies;
    let further = |set: &Set<'a>| Further { extras: extras.to_vec(), attributes: set.clone() };
    let blocks = |link| {
        sets.iter().map(|set| Block::link(gpu, link, scheme, &further(set))).collect::<Vec<_>>()
    };
    links.into_iter().map(|link| (link, blocks(link))).collect()
}

/// The label rows of the counters file with this GPU's values, by name.
pub(super) fn extras<'a>(
    values: &'a [(u16, Arc<str>)],
    selection: &'a Selection,
) -> Vec<(&'a str, &'a str)> {
    let mut labels: Vec<(&str, &str)> = values
        .iter()
        .filter_map(|(at, value)| {
            let row = selection.labels.get(usize::from(*at))?;
            Some((row.name.as_ref(), value.as_ref()))
        })
        .collect();
    labels.sort_unstable();
    labels
}

/// Samples in the order of rows, taken family by family.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a [Sample],
}

impl<'a> Cursor<'a> {
    fn new(samples: &'a [Sample]) -> Self {
        debug_assert!(
            samples.is_sorted_by_key(|sample| (sample.row, sample.link)),
            "samples are sorted by row, then link"
        );
        Self { rest: samples }
    }

    /// The samples of all rows before `end` that are not taken yet.
    pub(super) fn take_before(&mut self, end: usize) -> &'a [Sample] {
        let count =
            self.rest.iter().position(|s| usize::from(s.row) >= end).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(count);
        self.rest = rest;
        taken
    }
}
