//! Which objects lie below a group, in the order in which libhdf5 visits them, and would it open
//! them?
//!
//! They come in portions, as a caller may have enough of a few.  What is not certain is left to
//! libhdf5: of one object whether it opens (`Opens::Left`), and all that follows where it is not
//! known which objects there are (None).

use std::collections::HashSet;
use std::sync::Arc;

use chunkwise_format::{Kind, Object, Target};

use crate::metadata::Metadata;
use crate::opens::Opens;

/// A walk below a group.
pub struct Visit {
    metadata: Arc<Metadata>,
    /// Whether objects below groups are visited, too, each once.  Otherwise all links are.
    deep: bool,
    /// The last comes first.
    waiting: Vec<(Vec<u8>, Target)>,
    /// Objects with several names, and the group at the top.
    seen: HashSet<u64>,
}

impl Visit {
    /// Below the group at an address; None where libhdf5 has to list it.
    pub fn new(metadata: Arc<Metadata>, group: u64, deep: bool) -> Option<Self> {
        let object = metadata.object(group).ok()?;
        if !metadata.is_whole() || object.kind() != Kind::Group {
            return None;
        }
        let waiting = members(&metadata, &object, &[], deep)?;
        Some(Self { metadata: Arc::clone(&metadata), deep, waiting, seen: HashSet::from([group]) })
    }

    /// The next names, as many as these or fewer, none at the end; None where libhdf5 has to go on.
    pub fn next(&mut self, count: usize) -> Option<Vec<(Vec<u8>, Opens)>> {
        let mut found = Vec::new();
        while found.len() < count
            && let Some((name, target)) = self.waiting.pop()
        {
            let metadata = Arc::clone(&self.metadata);
            let opens = match target {
                Target::Hard(address) => {
                    let Ok(object) = metadata.object(address) else {
                        self.waiting.push((name, target));
                        break;
                    };
                    match self.object(&object, &name) {
                        Some(opens) => opens,
                        None if found.is_empty() => return None,
                        // What came before is certain.
                        None => {
                            self.waiting.push((name, target));
                            return Some(found);
                        }
                    }
                }
                _ => Some(Opens::Left),
            };
            found.extend(opens.map(|opens| (name, opens)));
        }
        (!found.is_empty() || self.waiting.is_empty()).then_some(found)
    }

    /// How an object opens that is found under a name; the inner None if it was found before.
    #[expect(clippy::option_option, reason = "unknown, or known to be left out")]
    fn object(&mut self, object: &Object<'_>, name: &[u8]) -> Option<Option<Opens>> {
        if self.deep {
            let address = object.address();
            let shared = object.reference_count().ok()? > 1;
            if self.seen.contains(&address) {
                // With a wrong count, libhdf5 would visit it again.
                return shared.then_some(None);
            }
            if object.kind() == Kind::Group {
                let below = members(&self.metadata, object, name, true)?;
                self.waiting.extend(below);
            }
            if shared {
                self.seen.insert(address);
            }
        }
        self.metadata.opens(object).map(Some)
    }
}

impl Metadata {
    /// The names in a group, in the order of h5py; None where libhdf5 has to list them.
    pub fn names(&self, group: u64) -> Option<Vec<Vec<u8>>> {
        let object = self.object(group).ok().filter(|_| self.is_whole())?;
        let found = members(self, &object, &[], false)?;
        Some(found.into_iter().rev().map(|(name, _)| name).collect())
    }
}

/// The members of a group, the last first: by name where all below it is visited, otherwise as h5py
/// lists them.  None where a name is none of libhdf5's.
fn members(
    metadata: &Metadata,
    group: &Object<'_>,
    above: &[u8],
    deep: bool,
) -> Option<Vec<(Vec<u8>, Target)>> {
    let mut links = metadata.links(group).ok()?;
    if deep {
        links.retain(|link| matches!(link.target, Target::Hard(_)));
        links.sort_by(|one, other| one.name.cmp(&other.name));
    }
    let strange = |name: &[u8]| name.is_empty() || name == b"." || name.contains(&b'/');
    if links.iter().any(|link| strange(&link.name) || link.name.contains(&0)) {
        return None;
    }
    let named = links.into_iter().rev().map(|link| {
        let mut name = Vec::with_capacity(above.len() + 1 + link.name.len());
        if !above.is_empty() {
            name.extend_from_slice(above);
            name.push(b'/');
        }
        name.extend_from_slice(&link.name);
        (name, link.target)
    });
    Some(named.collect())
}
