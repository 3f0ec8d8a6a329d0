#include "io/remote/remote_store.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <thread>

#include "io/remote/user_command.h"
#include "recipe/placeholders.h"
#include "runtime/disk.h"
#include "runtime/error.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

constexpr Nanoseconds kLookInterval = std::chrono::milliseconds(20);
constexpr Nanoseconds kMostBetweenAttempts = std::chrono::seconds(60);
constexpr uint64_t kMostListed = uint64_t{1} << 28;

Nanoseconds seconds_of(const Time& time) { return std::chrono::seconds(time.count()); }

}  // namespace

std::string path_below_folder(const std::string& listed, const std::string& folder) {
  const std::size_t bucket = folder.find("://") + 3;
  const std::size_t key = std::min(folder.find('/', bucket), folder.size() - 1) + 1;
  for (const std::string& front : {folder.substr(0), folder.substr(bucket), folder.substr(key)})
    if (!front.empty() && listed.starts_with(front + '/')) return listed.substr(front.size() + 1);
  return listed.find("://") == std::string::npos ? listed : "";
}

RemoteStore::RemoteStore(Options options) : options_(std::move(options)) {
  while (options_.folder.ends_with('/')) options_.folder.pop_back();
}

std::string RemoteStore::path(const std::string& name) const {
  return named_by(options_.commands, name.empty() ? options_.folder : options_.folder + '/' + name);
}

void RemoteStore::wait(Nanoseconds time) const {
  const TimePoint until = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < until) {
    if (options_.while_waiting) options_.while_waiting();
    std::this_thread::sleep_for(std::min(kLookInterval, time));
  }
}

void RemoteStore::attempt(const std::string& line, const Fields& fields, const std::string& task,
                          const std::string& output) const {
  Nanoseconds pause = seconds_of(options_.keys.retry_interval);
  for (int left = options_.keys.num_attempts - 1;; --left) try {
      return run({.line = line,
                  .fields = fields,
                  .task = task,
                  .log = options_.log,
                  .output = output,
                  .gives_way = options_.gives_way,
                  .timeout = seconds_of(options_.keys.timeout),
                  .while_waiting = options_.while_waiting});
    } catch (const OperatingError& error) {
      if (options_.while_waiting) options_.while_waiting();
      if (left == 0) throw;
      if (options_.on_retry) options_.on_retry(std::string(error.what()) + "; it is tried again");
      wait(pause);
      pause = std::min(2 * pause, kMostBetweenAttempts);
    }
}

// Programs print more columns before the name, as the size.
std::vector<std::string> RemoteStore::list() const {
  const std::string output = scratch("files");
  attempt(options_.commands.list, {{kRemoteField, path("")}}, "lists " + on_one_line(options_.folder),
          output);
  std::istringstream lines(PosixDisk().read_text(output, kMostListed));
  std::filesystem::remove(output);
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    const std::string name = path_below_folder(line.substr(line.find_last_of(" \t") + 1), options_.folder);
    if (is_plain_word(name)) names.push_back(name);
  }
  return names;
}

void RemoteStore::upload(const std::string& local, const std::string& name) const {
  attempt(options_.commands.upload, {{kSourceField, local}, {kTargetField, path(name)}},
          "uploads " + on_one_line(name));
}

void RemoteStore::fetch(const std::string& name, const std::string& local) const {
  attempt(options_.commands.fetch, {{kSourceField, path(name)}, {kTargetField, local}},
          "fetches " + on_one_line(options_.folder + '/' + name));
}

void RemoteStore::remove(const std::string& name) const {
  attempt(options_.commands.remove, {{kRemoteField, path(name)}}, "removes " + on_one_line(name));
}

}  // namespace tutti
