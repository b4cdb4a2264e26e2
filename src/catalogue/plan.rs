//! stub
#![allow(missing_docs)]
use super::{Call, Fact, FieldValueRead, RateRead};
#[derive(Debug, Clone, Default)]
pub struct Plan {
    pub board: Vec<PlannedCall>,
    pub instance: Vec<PlannedCall>,
    pub field_values: Vec<PlannedFieldValue>,
    pub rates: Vec<PlannedRate>,
    pub facts: Vec<PlannedFact>,
    pub xids: Vec<u16>,
}
#[derive(Debug, Clone)]
pub struct PlannedCall {
    pub call: Call,
    pub link: Option<u8>,
    pub rows: Vec<u16>,
    pub labels: Vec<u16>,
}
#[derive(Debug, Clone)]
pub struct PlannedFieldValue {
    pub read: FieldValueRead,
    pub rows: Vec<u16>,
    pub labels: Vec<u16>,
}
#[derive(Debug, Clone)]
pub struct PlannedRate {
    pub read: RateRead,
    pub rows: Vec<u16>,
}
#[derive(Debug, Clone)]
pub struct PlannedFact {
    pub fact: Fact,
    pub rows: Vec<u16>,
    pub labels: Vec<u16>,
}
