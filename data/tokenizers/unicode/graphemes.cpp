#include "data/tokenizers/unicode/graphemes.h"

#include "data/tokenizers/unicode/code_points.h"

namespace tutti {
namespace {

constexpr uint32_t kJoiner = 0x200d;

enum class Hangul { kNone, kLead, kVowel, kTail, kOpen, kClosed };  // open: a syllable without a tail

Hangul hangul_of(uint32_t c) {
  if ((c >= 0x1100 && c < 0x1160) || (c >= 0xa960 && c < 0xa97d)) return Hangul::kLead;
  if ((c >= 0x1160 && c < 0x11a8) || (c >= 0xd7b0 && c < 0xd7c7)) return Hangul::kVowel;
  if ((c >= 0x11a8 && c < 0x1200) || (c >= 0xd7cb && c < 0xd7fc)) return Hangul::kTail;
  if (c < 0xac00 || c >= 0xd7a4) return Hangul::kNone;
  return (c - 0xac00) % 28 == 0 ? Hangul::kOpen : Hangul::kClosed;
}

bool joins_hangul(Hangul before, Hangul after) {
  switch (before) {
    case Hangul::kLead:
      return after != Hangul::kNone && after != Hangul::kTail;
    case Hangul::kVowel:
    case Hangul::kOpen:
      return after == Hangul::kVowel || after == Hangul::kTail;
    case Hangul::kTail:
    case Hangul::kClosed:
      return after == Hangul::kTail;
    default:
      return false;
  }
}

bool is_flag(uint32_t c) { return c >= 0x1f1e6 && c < 0x1f200; }

// What of a cluster matters for the next character.
struct Cluster {
  uint32_t last = 0;
  int flags = 0;            // regional indicators at the end
  bool pictograph = false;  // a pictograph, then marks
};

bool joins(const Cluster& cluster, uint32_t next) {
  const UnicodeTables& tables = unicode();
  if (cluster.last == '\r' && next == '\n') return true;
  if (tables.has(cluster.last, kAlone) || tables.has(next, kAlone)) return false;
  if (joins_hangul(hangul_of(cluster.last), hangul_of(next))) return true;
  if (next == kJoiner || tables.has(next, kExtend | kSpacing)) return true;
  if (tables.has(cluster.last, kPrepend)) return true;
  if (cluster.last == kJoiner && cluster.pictograph && tables.has(next, kPictographic)) return true;
  return cluster.flags % 2 == 1 && is_flag(next);
}

void extend(Cluster& cluster, uint32_t next) {
  const UnicodeTables& tables = unicode();
  const bool continues = tables.has(next, kExtend) || next == kJoiner;
  cluster.pictograph = tables.has(next, kPictographic) || (cluster.pictograph && continues);
  cluster.flags = is_flag(next) ? cluster.flags + 1 : 0;
  cluster.last = next;
}

}  // namespace

std::size_t first_grapheme(std::string_view text) {
  Cluster cluster;
  std::size_t at = 0;
  while (at < text.size()) {
    const CodePoint point = code_point_at(text.data() + at);
    if (at > 0 && !joins(cluster, point.value)) break;
    extend(cluster, point.value);
    at += point.bytes;
  }
  return at;
}

}  // namespace tutti
