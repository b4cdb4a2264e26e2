//! The rows of the page that one GPU makes: itself, its MIG instances, its links.

use std::sync::Arc;

use super::labels::{Block, Further, Style};
use super::roster::Member;
use super::scheme::LabelScheme;
use crate::catalogue::Selection;
use crate::sampler::snapshot::{GpuReading, Sample};

/// A GPU with a reading, its label blocks, and how far its samples are written.
#[derive(Debug)]
pub(super) struct Device<'a> {
    /// Whether the GPU itself is a row for DCGM-named families.
    pub(super) whole: bool,
    block: Block<'a>,
    /// The same for our own families.
    own: Block<'a>,
    pub(super) board: Cursor<'a>,
    pub(super) texts: &'a [(u16, Arc<str>)],
    /// By GPU instance id.
    pub(super) instances: Vec<Instance<'a>>,
    /// By NVML link number.
    links: Vec<(u8, Block<'a>)>,
}

/// A MIG instance's label block and how far its samples are written.
#[derive(Debug)]
pub(super) struct Instance<'a> {
    block: Block<'a>,
    /// The same for our own families.
    own: Block<'a>,
    pub(super) samples: Cursor<'a>,
}

impl<'a> Device<'a> {
    /// `None` for a GPU that is no row in any way.
    pub(super) fn new(
        member: &Member<'a>,
        selection: &'a Selection,
        scheme: &'a LabelScheme,
    ) -> Option<Self> {
        let (gpu, reading) = (member.identity, member.reading()?);
        if !reading.whole && reading.instances.is_empty() {
            return None;
        }
        let further = Further { extras: extras(reading, selection), attributes: Vec::new() };
        let mut links: Vec<u8> = reading.board.iter().filter_map(|sample| sample.link).collect();
        links.sort_unstable();
        links.dedup();
        Some(Self {
            whole: reading.whole,
            block: Block::gpu(gpu, Style::Dcgm, scheme, &further),
            own: Block::gpu(gpu, Style::Own, scheme, &further),
            board: Cursor::new(&reading.board),
            texts: &reading.texts,
            instances: member
                .instances
                .iter()
                .map(|instance| Instance {
                    block: Block::instance(
                        (gpu, &instance.identity),
                        Style::Dcgm,
                        scheme,
                        &further,
                    ),
                    own: Block::instance((gpu, &instance.identity), Style::Own, scheme, &further),
                    samples: Cursor::new(&instance.samples),
                })
                .collect(),
            links: links
                .into_iter()
                .map(|link| (link, Block::link(gpu, link, scheme, &further)))
                .collect(),
        })
    }

    /// The labels of the GPU on a family's rows.
    pub(super) fn block(&self, style: Style) -> &Block<'a> {
        match style {
            Style::Dcgm => &self.block,
            Style::Own => &self.own,
        }
    }

    /// The labels of a link; `None` for a sample that names none.
    pub(super) fn link(&self, link: Option<u8>) -> Option<&Block<'a>> {
        let at = self.links.binary_search_by_key(&link?, |(number, _)| *number).ok()?;
        Some(&self.links[at].1)
    }
}

impl<'a> Instance<'a> {
    /// The labels of the instance on a family's rows.
    pub(super) fn block(&self, style: Style) -> &Block<'a> {
        match style {
            Style::Dcgm => &self.block,
            Style::Own => &self.own,
        }
    }
}

/// The label rows of the counters file with this GPU's values, by name.
fn extras<'a>(reading: &'a GpuReading, selection: &'a Selection) -> Vec<(&'a str, &'a str)> {
    let mut labels: Vec<(&str, &str)> = reading
        .labels
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
