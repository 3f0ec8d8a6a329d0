#include "analysis/profiler_traces.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>

#include "analysis/run_folder.h"
#include "io/json/json_text.h"
#include "io/run_paths.h"
#include "recipe/toml_reader.h"

namespace tutti {
namespace {

using Json = nlohmann::ordered_json;

struct Operation {
  std::string name, row;
  double begin_us = 0.0, us = 0.0;
};

// One of Kineto's files.
struct ProfilerTrace {
  int rank = -1;        // -1: the file is no trace of tutti's
  int64_t zero_ns = 0;  // of the operations' times, by the rank's clock
  std::vector<Operation> operations;
};

std::string row_of(const Json& event) {
  static const std::set<std::string> stream_categories{"kernel", "gpu_memcpy", "gpu_memset"};
  const std::string tid = event.at("tid").dump();
  return stream_categories.contains(event.at("cat").get<std::string>()) ? "stream " + tid
                                                                        : "operators, thread " + tid;
}

bool is_operation(const Json& event) {
  static const std::set<std::string> drawn{"cpu_op",     "user_annotation", "kernel",     "gpu_memcpy",
                                           "gpu_memset", "cuda_runtime",    "cuda_driver"};
  return event.value("ph", "") == "X" && drawn.contains(event.value("cat", ""));
}

// Events are dropped as they are read: there are many.
ProfilerTrace read_trace(const std::vector<std::byte>& bytes) {
  ProfilerTrace trace;
  const auto keep = [&](int depth, Json::parse_event_t what, Json& value) {
    constexpr int kEvent = 2;  // {"traceEvents": [{...}]}
    if (depth != kEvent || what != Json::parse_event_t::object_end) return true;
    if (is_operation(value))
      trace.operations.push_back({value.at("name").get<std::string>(), row_of(value),
                                  value.at("ts").get<double>(), value.at("dur").get<double>()});
    return false;
  };
  const Json rest = parse_json<Json>({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, keep);
  if (!rest.contains("tutti_rank")) return {};
  trace.rank = static_cast<int>(std::clamp<int64_t>(integer_member(rest, "tutti_rank", -1), -1, INT32_MAX));
  const int64_t clock = integer_member(rest, "tutti_clock"),
                base = integer_member(rest, "baseTimeNanoseconds");
  if (__builtin_add_overflow(clock, base, &trace.zero_ns)) return {};
  return trace;
}

// By the run's recipe; "" without [profiler].
std::string traces_folder(const Disk& disk, const std::string& run_dir) {
  if (!disk.exists(run_dir + "/" + kRecipeFile)) return "";  // journals alone
  const Setting recipe = read_recipe(path_in_run(run_dir, kRecipeFile));
  const std::string folder = text_at(recipe, "profiler", "folder");
  if (folder.empty()) return "";
  const Setting* const run_name = recipe.find("run_name");
  const std::string name = run_name && run_name->is_text() ? run_name->text() : "";
  return require_no_link_out(run_dir, logger_path(run_dir, name, 0, folder));
}

int64_t draw(const ProfilerTrace& from, TimePoint zero, const ProfilerTrack& track,
             std::map<std::pair<int, std::string>, TraceFile::Track>& rows, TraceFile& trace) {
  constexpr double kLongestUs = 1e15;  // 30 years
  const int64_t zero_ns = std::chrono::duration_cast<Nanoseconds>(zero.time_since_epoch()).count();
  int64_t offset_ns = 0, drawn = 0;
  if (__builtin_sub_overflow(from.zero_ns, zero_ns, &offset_ns)) return 0;
  for (const Operation& operation : from.operations) {
    const bool is_time =
        std::abs(operation.begin_us) < kLongestUs && operation.us >= 0 && operation.us < kLongestUs;
    int64_t begin_ns = 0;
    if (!is_time || __builtin_add_overflow(offset_ns, std::llround(1e3 * operation.begin_us), &begin_ns))
      continue;
    const Nanoseconds begin(begin_ns);
    if (begin < Nanoseconds(0)) continue;
    const auto [row, is_new] = rows.try_emplace({from.rank, operation.row});
    if (is_new) {
      row->second = track(from.rank, static_cast<int64_t>(rows.size()) - 1);
      trace.name_thread(row->second, operation.row);
    }
    trace.slice(row->second, operation.name, begin, Nanoseconds(std::llround(1e3 * operation.us)));
    ++drawn;
  }
  return drawn;
}

}  // namespace

int64_t draw_profiler_traces(const Disk& disk, const std::string& run_dir,
                             const std::vector<TimePoint>& zeros, const ProfilerTrack& track,
                             TraceFile& trace) {
  const std::string folder = traces_folder(disk, run_dir);
  if (folder.empty() || !disk.exists(folder)) return 0;
  std::map<std::pair<int, std::string>, TraceFile::Track> rows;
  int64_t drawn = 0;
  for (const std::string& name : disk.list(folder)) try {
      const ProfilerTrace recorded = read_trace(disk.read(folder + "/" + name));
      if (recorded.rank >= 0 && recorded.rank < static_cast<int>(zeros.size()))
        drawn += draw(recorded, zeros[static_cast<std::size_t>(recorded.rank)], track, rows, trace);
    } catch (const Json::exception&) {
      continue;  // of another program, or cut off
    }
  return drawn;
}

}  // namespace tutti
