#include "sim/simulate/seed_workers.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/lack_of_memory.h"
#include "tensors/memory/torch_error.h"

namespace tutti {
namespace {

constexpr char kField = '\t';
constexpr char kItem = '\x1e';
constexpr const char* kBegin = "tutti-seed-begins";
constexpr const char* kHeartbeatLine = "tutti-seed-heartbeat";
constexpr const char *kRefusal = "tutti-seeds-refused", *kNoMemory = "tutti-seeds-lack-memory";
constexpr const char* kResult = "tutti-seed-result";
constexpr std::size_t kFields = 12;

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

std::map<std::string, int64_t> parsed_counts(const std::vector<std::string>& texts) {
  std::map<std::string, int64_t> counts;
  for (const std::string& text : texts) {
    const std::size_t equals = text.rfind('=');
    counts[text.substr(0, equals)] = std::stoll(text.substr(equals + 1));
  }
  return counts;
}

}  // namespace

std::string heartbeat_line() { return kHeartbeatLine; }

std::string begin_line(uint64_t seed) { return std::string(kBegin) + kField + std::to_string(seed); }

std::optional<uint64_t> parse_begin_line(const std::string& line) {
  const auto fields = split(line, kField);
  if (fields[0] != kBegin || fields.size() != 2) return std::nullopt;
  return std::stoull(fields[1]);
}

std::string refusal_line(const RunError& why) {
  return (lacks_memory(why.kind()) ? kNoMemory : kRefusal) + (kField + join({why.headline()}, kItem));
}

std::optional<RunError> parse_refusal_line(const std::string& line) {
  const auto fields = split(line, kField);
  if (fields.size() != 2 || !fields[1].ends_with(kItem)) return std::nullopt;
  if (fields[0] != kRefusal && fields[0] != kNoMemory) return std::nullopt;
  return RunError(fields[0] == kNoMemory ? EndKind::kOutOfMemoryElsewhere : EndKind::kUserError,
                  items(fields[1]).front());
}

std::string result_line(const SeedResult& result) {
  std::string text = kResult;
  for (const std::string& field :
       {std::to_string(result.seed), std::to_string(result.weights), std::to_string(result.deliveries),
        std::to_string(result.next_draw), std::to_string(result.attempts), std::to_string(result.rank_steps),
        join(counts_text(result.faults), kItem), join(result.findings, kItem), join(result.summary, kItem),
        join(counts_text(result.refusals), kItem), join(result.probes, kItem)})
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
  result.faults = parsed_counts(items(fields[7]));
  result.findings = items(fields[8]);
  result.summary = items(fields[9]);
  result.refusals = parsed_counts(items(fields[10]));
  result.probes = items(fields[11]);
  return result;
}

namespace {

using Command = std::function<std::vector<std::string>(const SeedShare&)>;
using OnResult = std::function<void(const SeedResult&)>;

// Pins this thread to a core while it starts a process, which inherits the core.
class PinnedToCore {
 public:
  explicit PinnedToCore(int core) {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    sched_setaffinity(0, sizeof cores, &cores);
  }
  ~PinnedToCore() { sched_setaffinity(0, sizeof before_, &before_); }
  PinnedToCore(const PinnedToCore&) = delete;

 private:
  cpu_set_t before_;
};

class Worker {
 public:
  Worker(const SeedShare& share, int core, Nanoseconds timeout, const Command& command,
         const OnResult& on_result)
      : share_(share), core_(core), timeout_(timeout), command_(command), on_result_(on_result) {
    start();
  }
  ~Worker() {
    if (pid_ > 0) ::kill(pid_, SIGKILL), ::waitpid(pid_, nullptr, 0);
    if (pipe_ >= 0) ::close(pipe_);
  }
  Worker(const Worker&) = delete;

  int pipe() const { return pipe_; }

  // Reads the worker's output; false once all seeds of the share are done.
  bool read_output() {
    char bytes[1 << 14];
    const ssize_t got = ::read(pipe_, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) return true;
    if (got <= 0) return handle_exit();
    silence_ = {};
    output_.append(bytes, got);
    for (std::size_t end = output_.find('\n'); end != std::string::npos; end = output_.find('\n')) {
      handle_line(output_.substr(0, end));
      output_.erase(0, end + 1);
    }
    return true;
  }

  // Adds to the time without output and kills a worker beyond the timeout; read_output() then sees its end.
  void add_silence(Nanoseconds time) {
    silence_ += time;
    if (silence_ <= timeout_ || killed_) return;
    killed_ = true;
    ::kill(pid_, SIGKILL);
  }

 private:
  void start();

  void handle_line(const std::string& text) {
    if (const auto seed = parse_begin_line(text)) {
      current_ = seed;
      seedless_workers_ = 0;
    } else if (const auto result = parse_result_line(text)) {
      current_.reset();
      share_.first = result->seed + share_.stride;
      if (share_.first <= share_.last)
        on_result_(*result);
      else
        last_result_ = result;  // completed by the exit of the process
    } else if (const auto why = parse_refusal_line(text)) {
      throw_run_error(*why, "");
    }
  }

  bool handle_exit() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    ::close(std::exchange(pipe_, -1));
    const std::string outcome = exit_text(status);
    if (last_result_) {
      if (killed_ || status != 0) last_result_->findings.push_back(outcome + ", after its last seed");
      on_result_(*last_result_);
      return false;
    }
    if (!current_ && ++seedless_workers_ > 1)
      throw OperatingError("processes of the simulation end before their first seed begins: " + outcome);
    SeedResult lost;
    lost.seed = current_.value_or(share_.first);
    lost.findings = {outcome + (current_ ? "" : ", before the seed began")};
    current_.reset();
    share_.first = lost.seed + share_.stride;
    on_result_(lost);
    if (share_.first > share_.last) return false;
    start();
    return true;
  }

  std::string exit_text(int status) const {
    if (killed_)
      return "the process printed nothing for " + std::to_string(static_cast<int64_t>(seconds(timeout_))) +
             " s and was killed";
    if (WIFSIGNALED(status)) return std::string("the process was ended by ") + strsignal(WTERMSIG(status));
    return "the process ended with exit code " + std::to_string(WEXITSTATUS(status));
  }

  SeedShare share_;
  int core_;
  Nanoseconds timeout_;
  const Command& command_;
  const OnResult& on_result_;
  pid_t pid_ = -1;
  int pipe_ = -1;
  std::string output_;
  Nanoseconds silence_{};
  bool killed_ = false;
  std::optional<uint64_t> current_;
  int seedless_workers_ = 0;               // in a row that ended before a seed began
  std::optional<SeedResult> last_result_;  // of the share's last seed
};

void Worker::start() {
  output_.clear();
  silence_ = {};
  killed_ = false;
  int pipe_ends[2];
  if (::pipe2(pipe_ends, O_CLOEXEC) != 0)
    throw OperatingError(std::string("no pipe: ") + std::strerror(errno));
  const std::vector<std::string> words = command_(share_);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
  const PinnedToCore pinned(core_);
  const int error = ::posix_spawn(&pid_, words[0].c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(pipe_ends[1]);
  pipe_ = pipe_ends[0];
  if (error != 0) throw OperatingError(words[0] + ": cannot start: " + std::strerror(error));
}

}  // namespace

std::vector<int> allowed_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  return cores;
}

// Silence is counted between polls, so that a stopped parent process (Ctrl-Z) kills no worker.
void simulate_seeds(uint64_t first, uint64_t last, int jobs, const Command& command,
                    const OnResult& on_result, Nanoseconds timeout) {
  using Clock = std::chrono::steady_clock;
  const std::chrono::milliseconds poll_interval(timeout >= std::chrono::seconds(10) ? 1000 : 50);
  const std::vector<int> cores = allowed_cores();
  const auto stride = std::min<uint64_t>(jobs, last - first + 1);
  std::vector<std::unique_ptr<Worker>> workers;
  for (uint64_t i = 0; i < stride; ++i)
    workers.push_back(std::make_unique<Worker>(SeedShare{first + i, last, stride}, cores[i % cores.size()],
                                               timeout, command, on_result));
  Clock::time_point last_poll = Clock::now();
  while (!workers.empty()) {
    std::vector<pollfd> pipes;
    for (const auto& worker : workers) pipes.push_back({worker->pipe(), POLLIN, 0});
    if (::poll(pipes.data(), pipes.size(), static_cast<int>(poll_interval.count())) < 0) continue;
    const Clock::time_point now = Clock::now();
    const auto elapsed = std::min<Nanoseconds>(now - std::exchange(last_poll, now), 2 * poll_interval);
    for (std::size_t i = pipes.size(); i-- > 0;) {
      if (pipes[i].revents == 0)
        workers[i]->add_silence(elapsed);
      else if (!workers[i]->read_output())
        workers.erase(workers.begin() + static_cast<int64_t>(i));
    }
  }
}

}  // namespace tutti
