#include "training/loggers/trackers/mlflow_sender.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include "io/json/json_line.h"
#include "io/json/json_text.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr uint64_t kChunk = 1 << 18;  // bytes of lines for a few requests

using RecordJson = nlohmann::ordered_json;

std::vector<MlflowPoint> points_of(const RecordJson& record) {
  std::vector<MlflowPoint> points;
  for (const auto& [name, value] : json_numbers_of(record["metrics"].dump()).members)
    points.push_back({name, value, integer_member(record, "time"), integer_member(record, "batch")});
  return points;
}

}  // namespace

MlflowSender::MlflowSender(Disk& disk, const Clock& clock, Warn warn, HttpClient& http, std::string uri,
                           MlflowRun run, const LogStart& start, MlflowIds ids)
    : disk_(disk),
      clock_(clock),
      warn_(std::move(warn)),
      uri_(uri),
      run_(std::move(run)),
      start_(start),
      ids_(std::move(ids)),
      api_(http, std::move(uri)),
      records_(start.run_dir + "/" + kMlflowRecords),
      artifacts_(start.run_dir + "/" + kMlflowArtifacts) {}

bool MlflowSender::send_all() {
  return attempt([this] { return send_records(); });
}

bool MlflowSender::finish(bool failed) {
  return attempt([&] {
    return send_records() &&
           passed(api_.finish(ids_, failed ? "FAILED" : "FINISHED", clock_.unix_ms()), "the end of the run");
  });
}

// An exception would end the program: the caller has no handler.
template <class Work>
bool MlflowSender::attempt(const Work& work) try {
  return work();
} catch (const std::exception& error) {
  fail({MlflowReply::Kind::kLater, error.what()}, "its records");
  return false;
}

bool MlflowSender::send_records() {
  if (!is_open_ && !open()) return false;
  const int64_t before = ids_.sent;
  bool is_sent = true;
  for (std::string lines = next_lines(); is_sent && !lines.empty(); lines = next_lines()) {
    is_sent = send_lines(lines);
    if (is_sent) ids_.sent += std::ssize(lines);
  }
  if (ids_.sent != before) ids_.save(disk_, start_);
  return is_sent;
}

bool MlflowSender::open() {
  const MlflowReply reply = api_.open(run_, ids_, known_);
  ids_.save(disk_, start_);
  is_open_ = reply.is_done();
  if (is_open_) return passed(reply, "");
  fail(reply, "the run");
  return false;
}

// Whole lines, at least one if there is one.
std::string MlflowSender::next_lines() const {
  if (!disk_.exists(records_)) return "";
  const uint64_t rest = disk_.size(records_) - std::min<uint64_t>(disk_.size(records_), ids_.sent);
  for (uint64_t bytes = kChunk;; bytes *= 2) {
    const auto part = disk_.read_range(records_, ids_.sent, std::min(bytes, rest));
    const std::string_view text(reinterpret_cast<const char*>(part.data()), part.size());
    if (const auto end = text.rfind('\n'); end != std::string_view::npos)
      return std::string(text.substr(0, end + 1));
    if (bytes >= rest) return "";
  }
}

bool MlflowSender::send_lines(const std::string& lines) {
  std::vector<MlflowPoint> points;
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);) {
    const RecordJson record = parse_json<RecordJson>(line, nullptr, /*allow_exceptions=*/false);
    if (!record.is_object()) continue;
    if (record.contains("metrics")) {
      // Of an earlier attempt, the server may have points of steps that are repeated.
      for (MlflowPoint& point : points_of(record)) {
        const auto known = known_.last_steps.find(point.key);
        if (known == known_.last_steps.end() || known->second < point.step)
          points.push_back(std::move(point));
        else if (!start_.recipe_changes.empty() && !std::exchange(is_repeat_told_, true))
          warn_(uri_ + " keeps the points of the earlier attempt up to step " +
                std::to_string(known->second) +
                ": MLflow deletes no point, and the changed recipe may give others");
      }
    }
    if (record.contains("params") && !send_params(record["params"].dump())) return false;
    if (record.contains("artifact") && !send_artifact(text_member(record, "artifact"))) return false;
  }
  return send_points(points);
}

bool MlflowSender::send_points(const std::vector<MlflowPoint>& points) {
  for (std::size_t i = 0; i < points.size(); i += MlflowApi::kMostPoints) {
    const auto begin = points.begin() + static_cast<std::ptrdiff_t>(i);
    const auto count = std::min(MlflowApi::kMostPoints, points.size() - i);
    const std::vector<MlflowPoint> some(begin, begin + static_cast<std::ptrdiff_t>(count));
    if (!passed(api_.log_points(ids_, some), "metrics")) return false;
  }
  return true;
}

bool MlflowSender::send_params(const std::string& json) {
  MlflowParams params;
  const auto all = parse_json<RecordJson>(json, nullptr, /*allow_exceptions=*/false);
  for (const auto& [name, value] : all.items()) {
    const auto known = known_.params.find(name);
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (known == known_.params.end()) params.emplace_back(name, text);
    if (known == known_.params.end() || known->second == text || std::exchange(is_change_told_, true))
      continue;
    warn_(uri_ + " keeps the first value of " + name + ", " + known->second +
          ": MLflow changes no parameter");
  }
  for (std::size_t i = 0; i < params.size(); i += MlflowApi::kMostParams) {
    const auto begin = params.begin() + static_cast<std::ptrdiff_t>(i);
    const auto count = std::min(MlflowApi::kMostParams, params.size() - i);
    const MlflowParams some(begin, begin + static_cast<std::ptrdiff_t>(count));
    if (!passed(api_.log_params(ids_, some), "hyperparameters")) return false;
    known_.params.insert(some.begin(), some.end());
  }
  return true;
}

bool MlflowSender::send_artifact(const std::string& path) {
  if (known_.artifacts.empty()) {
    if (!std::exchange(is_proxy_told_, true))
      warn_(uri_ + " takes no artifacts over HTTP: images, tables and texts stay in " + artifacts_);
    return true;
  }
  std::vector<std::byte> bytes;
  try {
    bytes = disk_.read(artifacts_ + "/" + path);
  } catch (const OperatingError& error) {
    warn_(error.what());
    return true;
  }
  return passed(api_.put_artifact(known_, path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}),
                path);
}

bool MlflowSender::passed(const MlflowReply& reply, const std::string& what) {
  if (reply.kind == MlflowReply::Kind::kLater || reply.kind == MlflowReply::Kind::kLocked) {
    fail(reply, what);
    return false;
  }
  if (std::exchange(is_failing_, false)) warn_(uri_ + " answers again; the records that waited are sent");
  if (!reply.is_done() && !std::exchange(is_refusal_told_, true))
    warn_(uri_ + " refuses " + what + ", and similar records are lost there: " + reply.problem);
  return true;
}

void MlflowSender::fail(const MlflowReply& reply, const std::string& what) {
  if (std::exchange(is_failing_, true)) return;
  const char* advice = reply.kind == MlflowReply::Kind::kLocked
                           ? "; the environment's MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and "
                             "MLFLOW_TRACKING_PASSWORD, are the credentials"
                           : "";
  warn_(uri_ + " did not take " + what + ": " + reply.problem + advice + "; all records wait in " + records_ +
        ", and are sent once the server takes them");
}

int64_t MlflowSender::unsent() const try {
  if (!disk_.exists(records_)) return 0;
  const uint64_t size = disk_.size(records_), sent = std::min<uint64_t>(size, ids_.sent);
  const auto rest = disk_.read_range(records_, sent, size - sent);
  return std::ranges::count(rest, std::byte{'\n'});
} catch (const OperatingError&) {
  return 0;
}

}  // namespace tutti
