//! Basic authentication against bcrypt hashes, as exporter-toolkit does it.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use tokio::sync::Semaphore;

/// Verdicts remembered of each kind.
const REMEMBERED: usize = 100;

/// Salt and digest of a hash that belongs to nobody.
const NOBODY: &str = "QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi";

type Tag = [u8; 32];

/// Checks passwords. bcrypt takes a tenth of a second and more by design, so verdicts are
/// remembered, and computed one at a time: guessing cannot take more than one core.
#[derive(Debug)]
pub(super) struct Passwords {
    /// What is remembered is a keyed digest; the key dies with the process.
    key: hmac::Key,
    /// Apart from each other, so that guesses cannot push out a scraper's password.
    right: ArcSwap<Vec<Tag>>,
    wrong: ArcSwap<Vec<Tag>>,
    turn: Arc<Semaphore>,
}

impl Passwords {
    pub(super) fn new() -> Result<Self, ring::error::Unspecified> {
        let random = ring::rand::SystemRandom::new();
        Ok(Self {
            key: hmac::Key::generate(hmac::HMAC_SHA256, &random)?,
            right: ArcSwap::default(),
            wrong: ArcSwap::default(),
            turn: Arc::new(Semaphore::new(1)),
        })
    }

    /// Whether the request names one of `users` and that user's password.
    pub(super) async fn accept(
        &self,
        headers: &HeaderMap,
        users: &BTreeMap<String, String>,
    ) -> bool {
        let Some((user, password)) = credentials(headers) else { return false };
        let known = users.get(&user);
        // An unknown user costs as much time as a known one, or names could be guessed.
        let hash = known.cloned().unwrap_or_else(|| decoy(users));
        let tag = self.tag(&[user.as_bytes(), hash.as_bytes(), &password]);
        if self.right.load().contains(&tag) {
            return known.is_some();
        }
        if self.wrong.load().contains(&tag) {
            return false;
        }
        let Ok(turn) = self.turn.clone().acquire_owned().await else { return false };
        let computed = tokio::task::spawn_blocking(move || {
            // Kept in here: a client that leaves does not end the computation.
            let _turn = turn;
            bcrypt::verify(password, &hash).unwrap_or(false)
        });
        let right = computed.await.unwrap_or(false) && known.is_some();
        remember(if right { &self.right } else { &self.wrong }, tag);
        right
    }

    /// Each part with its length, so that no two lists of parts are the same bytes.
    fn tag(&self, parts: &[&[u8]]) -> Tag {
        let mut context = hmac::Context::with_key(&self.key);
        for part in parts {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        let mut tag = Tag::default();
        tag.copy_from_slice(context.sign().as_ref());
        tag
    }
}

fn remember(verdicts: &ArcSwap<Vec<Tag>>, tag: Tag) {
    verdicts.rcu(|old| {
        let from = old.len().saturating_sub(REMEMBERED - 1);
        let mut new = old[from..].to_vec();
        new.push(tag);
        new
    });
}

/// A hash as costly as the users' own.
fn decoy(users: &BTreeMap<String, String>) -> String {
    let costs = users.values().filter_map(|hash| hash.parse::<bcrypt::HashParts>().ok());
    let cost = costs.map(|parts| parts.get_cost()).max().unwrap_or(bcrypt::DEFAULT_COST);
    format!("$2y${cost:02}${NOBODY}")
}

fn credentials(headers: &HeaderMap) -> Option<(String, Vec<u8>)> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = value.split_once(' ')?;
    let decoded = STANDARD.decode(encoded.trim()).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    let user = std::str::from_utf8(&decoded[..colon]).ok()?;
    scheme.eq_ignore_ascii_case("basic").then(|| (user.to_owned(), decoded[colon + 1..].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn basic(credentials: &str) -> HeaderMap {
        let value = format!("Basic {}", STANDARD.encode(credentials));
        [(AUTHORIZATION, value.parse().unwrap())].into_iter().collect()
    }

    #[tokio::test]
    async fn passwords() {
        let passwords = Passwords::new().unwrap();
        let hash = bcrypt::hash("secret:with colon", 4).unwrap();
        let mut users = BTreeMap::from([("prometheus".to_owned(), hash)]);
        for _ in 0..2 {
            assert!(passwords.accept(&basic("prometheus:secret:with colon"), &users).await);
            assert!(!passwords.accept(&basic("prometheus:secret"), &users).await);
            assert!(!passwords.accept(&basic("prometheus"), &users).await);
            assert!(!passwords.accept(&basic("nobody:secret:with colon"), &users).await);
            assert!(!passwords.accept(&basic("nobody:fakepassword"), &users).await);
            assert!(!passwords.accept(&HeaderMap::new(), &users).await);
        }
        // A changed hash is another question.
        users.insert("prometheus".to_owned(), bcrypt::hash("other", 4).unwrap());
        assert!(!passwords.accept(&basic("prometheus:secret:with colon"), &users).await);
        assert!(passwords.accept(&basic("prometheus:other"), &users).await);
    }

    #[tokio::test]
    async fn guesses_do_not_push_out_the_right_one() {
        let passwords = Passwords::new().unwrap();
        let users = BTreeMap::from([("a".to_owned(), bcrypt::hash("b", 4).unwrap())]);
        assert!(passwords.accept(&basic("a:b"), &users).await);
        for guess in 0..REMEMBERED + 20 {
            assert!(!passwords.accept(&basic(&format!("a:{guess}")), &users).await);
        }
        assert_eq!((passwords.right.load().len(), passwords.wrong.load().len()), (1, REMEMBERED));
    }
}
