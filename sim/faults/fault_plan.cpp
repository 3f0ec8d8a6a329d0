#include "sim/faults/fault_plan.h"

#include <algorithm>
#include <array>
#include <utility>

#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "sim/faults/failing_memory.h"

namespace tutti {
namespace {

const std::array<std::string, 12> kPhases = {"start",      "load",       "batch",       "microbatch",
                                             "backward",   kReducePhase, kVerdictPhase, "commit",
                                             "evaluation", "durable",    "publish",     "disk"};
const std::array<std::string, 3> kMemoryPhases = {FailingMemory::kForward, FailingMemory::kBackward,
                                                  FailingMemory::kEvaluation};

struct NamedKind {
  const char* name;
  FaultKind kind;
  const char* doc;
};
constexpr NamedKind kKinds[] = {
    {"death", FaultKind::kDeath, "A rank's process is killed; what it wrote stays."},
    {"power_loss", FaultKind::kPowerLoss,
     "All processes end; the disk keeps what was synced, and of the rest a part."},
    {"sigterm", FaultKind::kSigterm, "A rank is asked to stop."},
    {"slow", FaultKind::kSlow, "A rank's steps take longer."},
    {"delay", FaultKind::kDelay, "A rank's control messages arrive later."},
    {"reorder", FaultKind::kReorder, "Control messages of several ranks overtake each other."},
    {"hang", FaultKind::kHang, "A collective does not end."},
    {"disk_full", FaultKind::kDiskFull, "Writes fail: no space is left."},
    {"write_error", FaultKind::kWriteError, "Writes fail: input/output error."},
    {"lost_write", FaultKind::kLostWrite, "Writes are taken, and do not land."},
    {"out_of_memory", FaultKind::kOutOfMemory,
     "An allocation of a rank's fails: of a forward, a backward or an evaluation."},
    {"torn_write", FaultKind::kTornWrite, "Writes are taken, and land up to the middle."},
};

Key number_of(const char* what, const char* fallback) {
  return Key{"count", KeyType::kInteger, fallback, what}.at_least(1);
}

Key duration(const char* what, const char* fallback) {
  return Key{"seconds", KeyType::kNumber, fallback, what}.at_least(0).at_most(1e6);
}

std::vector<Key> keys_of(FaultKind kind) {
  const Key file{"file", KeyType::kText, "checkpoints/", "only files whose path holds this"};
  switch (kind) {
    case FaultKind::kSlow:
      return {duration("that each step takes more", "1"), number_of("steps", "1")};
    case FaultKind::kDelay:
      return {duration("that each message takes more", "1"), number_of("messages", "5")};
    case FaultKind::kReorder:
      return {duration("that a message takes more at most", "1"), number_of("messages", "20")};
    case FaultKind::kHang:
      return {duration("until it ends; 0: never", "0")};
    case FaultKind::kOutOfMemory:
      return {number_of("allocations of the phase, of which one is drawn", "20")};
    case FaultKind::kDiskFull:
    case FaultKind::kWriteError:
    case FaultKind::kLostWrite:
    case FaultKind::kTornWrite:
      return {number_of("writes", "1"), file};
    default:
      return {};
  }
}

std::vector<std::string> phases_and_any() {
  std::vector<std::string> names(kPhases.begin(), kPhases.end());
  names.insert(names.begin(), "any");
  return names;
}

Catalog plan_catalog() {
  return {
      .section = "",
      .noun = "",
      .doc = "What goes wrong in a simulation.",
      .keys = {Key{"starts", KeyType::kInteger, "3", "of the job, that faults happen in"}.at_least(1).at_most(
          100)}};
}

Catalog fault_catalog() {
  using enum KeyType;
  Catalog catalog{
      .section = "fault",
      .noun = "fault",
      .doc = "One thing that goes wrong, at most once in a start.",
      .keys = {Key{"probability", kNumber, "1", "that it does, in each start"}.more_than(0).at_most(1),
               Key{"rank", kInteger, "any", "on which; any: drawn"}.or_word("any").at_least(0),
               Key{"step", kInteger, "any", "from which on; any: drawn"}.or_word("any").at_least(1),
               Key{"phase", kText, "any", "of the step; any: drawn"}.one_of(phases_and_any())}};
  for (const auto& [name, kind, doc] : kKinds) catalog.entries.push_back({name, doc, keys_of(kind)});
  catalog.repeated = true;
  return catalog;
}

void require_phase(const Setting& phase, const FaultRule& rule) {
  const auto drawn = fault_phases(rule.kind);
  std::vector<std::string> known(drawn.begin(), drawn.end());
  if (rule.phase == "any" || std::find(known.begin(), known.end(), rule.phase) != known.end()) return;
  std::string names;
  for (const std::string& one : known) names += (names.empty() ? "" : ", ") + one;
  phase.fail(rule.name + " never strikes there: expected " + names + " or any");
}

FaultRule rule_of(const Setting& fault, int ranks) {
  FaultRule rule;
  rule.name = fault.at("kind").text();
  for (const auto& one : kKinds)
    if (rule.name == one.name) rule.kind = one.kind;
  rule.probability = fault.at("probability").number();
  const Setting& rank = fault.at("rank");
  if (rank.is_integer()) {
    if (rank.integer() >= ranks) rank.fail("there are " + std::to_string(ranks) + " ranks, counted from 0");
    rule.rank = static_cast<int>(rank.integer());
  }
  if (fault.at("step").is_integer()) rule.step = fault.at("step").integer();
  rule.phase = fault.at("phase").text();
  require_phase(fault.at("phase"), rule);
  if (fault.has("seconds")) rule.seconds = fault.at("seconds").number();
  if (rule.seconds == 0 && fault.has("seconds") && rule.kind != FaultKind::kHang)
    fault.at("seconds").fail("a fault that takes no time is none");
  if (fault.has("count")) rule.count = fault.at("count").integer();
  if (fault.has("file")) rule.file = fault.at("file").text();
  return rule;
}

// Counted from 1, in the order of the plan.
void put_labels(std::vector<FaultRule>& rules) {
  for (std::size_t i = 0; i < rules.size(); ++i) {
    FaultRule& own = rules[i];
    const auto same = [&](const FaultRule& rule) { return rule.kind == own.kind; };
    const bool alone = std::count_if(rules.begin(), rules.end(), same) == 1;
    own.label = alone ? own.name : own.name + " (rule " + std::to_string(i + 1) + ")";
  }
}

}  // namespace

bool FaultRule::hits_disk() const {
  return kind == FaultKind::kDiskFull || kind == FaultKind::kWriteError || kind == FaultKind::kLostWrite ||
         kind == FaultKind::kTornWrite;
}

std::span<const std::string> fault_phases(FaultKind kind) {
  if (kind == FaultKind::kOutOfMemory) return kMemoryPhases;
  return kPhases;
}

std::span<const Catalog> fault_catalogs() {
  static const std::array<Catalog, 2> catalogs = {plan_catalog(), fault_catalog()};
  return catalogs;
}

FaultPlan make_fault_plan(const Setting& written, int ranks) {
  const Setting resolved = resolve(written, fault_catalogs());
  FaultPlan plan;
  plan.path = written.position.file;
  plan.starts = static_cast<int>(resolved.at("starts").integer());
  for (const auto& fault : resolved.at("fault").array()) plan.rules.push_back(rule_of(fault, ranks));
  put_labels(plan.rules);
  return plan;
}

FaultPlan read_fault_plan(const std::string& path, int ranks) {
  return make_fault_plan(read_recipe(path), ranks);
}

}  // namespace tutti
