#include "sim/simulate/seed_wire.h"

#include <algorithm>
#include <vector>

namespace tutti {
namespace {

constexpr char kField = '\t';
constexpr char kItem = '\x1e';
constexpr const char* kBegin = "tutti-seed-begins";
constexpr const char* kHeartbeatLine = "tutti-seed-heartbeat";
constexpr const char* kRefusal = "tutti-seeds-refused";
constexpr const char* kResult = "tutti-seed-result";
constexpr std::size_t kFields = 10;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::string join(const std::vector<std::string>& parts, char separator) {
  std::string text;
  for (std::string part : parts) {
    std::replace_if(
        part.begin(), part.end(), [](char c) { return c == '\n' || c == kField || c == kItem; }, ' ');
    text += part + separator;
  }
  return text;
}

// The inverse of join().
std::vector<std::string> items(const std::string& text) {
  std::vector<std::string> parts = split(text, kItem);
  parts.pop_back();
  return parts;
}

std::vector<std::string> counts_text(const std::map<std::string, int64_t>& counts) {
  std::vector<std::string> texts;
  for (const auto& [name, count] : counts) texts.push_back(name + "=" + std::to_string(count));
  return texts;
}

}  // namespace

std::string heartbeat_line() { return kHeartbeatLine; }

std::string begin_line(uint64_t seed) { return std::string(kBegin) + kField + std::to_string(seed); }

std::optional<uint64_t> parse_begin_line(const std::string& line) {
  const auto fields = split(line, kField);
  if (fields[0] != kBegin || fields.size() != 2) return std::nullopt;
  return std::stoull(fields[1]);
}

std::string refusal_line(const std::string& why) {
  return std::string(kRefusal) + kField + join({why}, kItem);
}

std::optional<std::string> parse_refusal_line(const std::string& line) {
  const auto fields = split(line, kField);
  if (fields[0] != kRefusal || fields.size() != 2 || !fields[1].ends_with(kItem)) return std::nullopt;
  return items(fields[1]).front();
}

std::string result_line(const SeedResult& result) {
  std::string text = kResult;
  for (const std::string& field :
       {std::to_string(result.seed), std::to_string(result.weights), std::to_string(result.deliveries),
        std::to_string(result.next_draw), std::to_string(result.attempts), std::to_string(result.rank_steps),
        join(counts_text(result.faults), kItem), join(result.findings, kItem), join(result.summary, kItem)})
    text += kField + field;
  return text;
}

std::optional<SeedResult> parse_result_line(const std::string& line) {
  const auto fields = split(line, kField);
  if (fields[0] != kResult || fields.size() != kFields) return std::nullopt;
  SeedResult result;
  result.seed = std::stoull(fields[1]);
  result.weights = std::stoull(fields[2]);
  result.deliveries = std::stoull(fields[3]);
  result.next_draw = std::stoull(fields[4]);
  result.attempts = std::stoi(fields[5]);
  result.rank_steps = std::stoll(fields[6]);
  for (const std::string& count : items(fields[7])) {
    const std::size_t equals = count.find('=');
    result.faults[count.substr(0, equals)] = std::stoll(count.substr(equals + 1));
  }
  result.findings = items(fields[8]);
  result.summary = items(fields[9]);
  return result;
}

}  // namespace tutti
