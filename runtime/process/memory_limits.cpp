#include "runtime/process/memory_limits.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>

#include "runtime/error.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr int64_t kNoLimit = int64_t{1} << 60;  // cgroup v1 has no word for none, but a large number
constexpr double kMb = 1e6;

// The number behind the key in lines "key number"; 0 = none.
int64_t value_of(std::string_view text, std::string_view key) {
  for (std::size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
    const bool begins_line = at == 0 || text[at - 1] == '\n';
    const std::size_t end = at + key.size();
    if (begins_line && end < text.size() && text[end] == ' ')
      return std::strtoll(text.data() + end, nullptr, 10);
  }
  return 0;
}

bool has_item(const std::string& list, const std::string& item) {
  return ("," + list + ",").find("," + item + ",") != std::string::npos;
}

// The path of the process's control group with a limit of memory; "" = none.
std::string group_of(const std::string& process, bool second_version) {
  std::ifstream groups(process + "/cgroup");
  for (std::string line; std::getline(groups, line);) {
    std::istringstream parts(line);
    std::string number, controllers, path;
    std::getline(std::getline(std::getline(parts, number, ':'), controllers, ':'), path);
    if (second_version ? controllers.empty() : has_item(controllers, "memory"))
      return path.starts_with('/') ? path : "";
  }
  return "";
}

}  // namespace

// A file of /proc or of a control group, which is read again and again.
class MemoryLimits::SystemFile {
 public:
  explicit SystemFile(const std::string& path) : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~SystemFile() {
    if (file_ >= 0) ::close(file_);
  }
  SystemFile(const SystemFile&) = delete;

  bool is_open() const { return file_ >= 0; }
  // The present contents, in `buffer`; "" = unreadable.
  template <std::size_t size>
  std::string_view read(std::array<char, size>& buffer) const {
    const ssize_t got = file_ < 0 ? -1 : ::pread(file_, buffer.data(), size - 1, 0);
    buffer[static_cast<std::size_t>(std::max<ssize_t>(got, 0))] = 0;
    return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
  }
  int64_t number() const {
    std::array<char, 64> buffer;
    return std::strtoll(read(buffer).data(), nullptr, 10);
  }

 private:
  int file_;
};

class MemoryLimits::Limit {
 public:
  Limit(std::string name, int64_t bytes, int sharers)
      : name_(std::move(name)), bytes_(bytes), sharers_(sharers) {}
  virtual ~Limit() = default;
  virtual bool limit_addresses() const { return false; }
  virtual bool kills() const { return false; }
  // The least and the most memory that counts towards the limit; the least is quick to compute.
  virtual int64_t used_at_most() const = 0;
  virtual int64_t used(Place place) const = 0;

  bool fit(int64_t bytes, int64_t reserve, Place place) const {
    const int64_t most = bytes_ - bytes * sharers_ - reserve;
    return used_at_most() <= most || used(place) <= most;
  }
  int64_t left() const { return bytes_ - used(Place::kMapped); }
  std::string text() const {
    return formatted("%s of %.1f MB, of which %.1f MB are left", name_.c_str(),
                     static_cast<double>(bytes_) / kMb, static_cast<double>(left()) / kMb);
  }

 private:
  std::string name_;
  int64_t bytes_;
  int sharers_;
};

// A limit of setrlimit.
class MemoryLimits::OfProcess final : public Limit {
 public:
  // `column`: of /proc/self/statm, in pages.
  OfProcess(const std::string& name, int64_t bytes, const std::string& statm, int column)
      : Limit(name, bytes, 1), statm_(statm), column_(column) {}
  bool limit_addresses() const override { return column_ == 0; }
  int64_t used_at_most() const override {
    std::array<char, 128> buffer;
    const char* at = statm_.read(buffer).data();
    int64_t pages = 0;
    char* end = nullptr;
    for (int i = 0; i <= column_; ++i, at = end) pages = std::strtoll(at, &end, 10);
    return pages * ::sysconf(_SC_PAGESIZE);
  }
  int64_t used(Place place) const override {
    const auto free = static_cast<int64_t>(place == Place::kHeap ? ::mallinfo2().fordblks : 0);
    return used_at_most() - free;
  }

 private:
  SystemFile statm_;
  int column_;
};

class MemoryLimits::OfGroup final : public Limit {
 public:
  OfGroup(int64_t bytes, const std::string& folder, bool second_version, int sharers)
      : Limit("memory limit of the control group", bytes, sharers),
        usage_(folder + (second_version ? "/memory.current" : "/memory.usage_in_bytes")),
        stat_(folder + "/memory.stat"),
        prefix_(second_version ? "" : "total_") {}
  bool kills() const override { return true; }
  int64_t used_at_most() const override { return usage_.number(); }
  // The system keeps pages of read files only until memory is needed.
  int64_t used(Place) const override {
    std::array<char, 8192> buffer;
    const std::string_view stat = stat_.read(buffer);
    return usage_.number() - value_of(stat, prefix_ + "active_file") -
           value_of(stat, prefix_ + "inactive_file");
  }

 private:
  SystemFile usage_, stat_;
  std::string prefix_;
};

MemoryLimits::MemoryLimits(const std::string& process, int sharers) {
  rlimit limit{};
  const auto add = [&](int resource, const char* name, int column) {
    if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur >= static_cast<rlim_t>(kNoLimit)) return;
    limits_.push_back(
        std::make_unique<OfProcess>(name, static_cast<int64_t>(limit.rlim_cur), process + "/statm", column));
  };
  add(RLIMIT_AS, "`ulimit -v`", 0);
  add(RLIMIT_DATA, "`ulimit -d`", 5);
  add_groups(process, sharers);
}

MemoryLimits::~MemoryLimits() = default;

// /proc/self/cgroup has lines "4:memory:/jobs/17" (v1) and "0::/jobs/17" (v2); mountinfo says where the tree
// of groups is mounted, and from which group on.
void MemoryLimits::add_groups(const std::string& process, int sharers) {
  std::ifstream mounts(process + "/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string word, root, folder, kind, options;
    words >> word >> word >> word >> root >> folder;
    while (words >> word && word != "-") {
    }
    words >> kind >> word >> options;
    const bool second = kind == "cgroup2";
    if (!second && (kind != "cgroup" || !has_item(options, "memory"))) continue;
    std::string path = group_of(process, second);
    if (path == "/") path = "";
    if (root != "/" && path.starts_with(root)) path.erase(0, root.size());
    for (;; path.erase(path.rfind('/'))) {
      add_group(folder + path, second, sharers);
      if (path.empty()) break;
    }
  }
}

void MemoryLimits::add_group(const std::string& folder, bool second_version, int sharers) {
  const SystemFile file(folder + (second_version ? "/memory.max" : "/memory.limit_in_bytes"));
  const int64_t bytes = file.number();  // "max" is none
  if (bytes > 0 && bytes < kNoLimit)
    limits_.push_back(std::make_unique<OfGroup>(bytes, folder, second_version, sharers));
}

bool MemoryLimits::limit_addresses() const {
  return std::ranges::any_of(limits_, [](const auto& one) { return one->limit_addresses(); });
}

bool MemoryLimits::kills() const {
  return std::ranges::any_of(limits_, [](const auto& one) { return one->kills(); });
}

bool MemoryLimits::fit(int64_t bytes, int64_t reserve, Place place) const {
  return std::ranges::all_of(limits_, [&](const auto& one) { return one->fit(bytes, reserve, place); });
}

void MemoryLimits::require_start(int threads) const {
  constexpr int64_t kStartBytes = int64_t{64} << 20, kStackBytes = int64_t{8} << 20;
  const bool stacks_count = std::ranges::any_of(limits_, [](const auto& one) { return !one->kills(); });
  const int64_t bytes = kStartBytes + (stacks_count ? 2 * threads * kStackBytes : 0);
  if (fit(0, bytes, Place::kMapped)) return;
  throw OperatingError(
      formatted("too little memory to start a rank, which takes %.0f MB: the system has a %s",
                static_cast<double>(bytes) / kMb, text().c_str()),
      EndKind::kOutOfMemoryElsewhere);
}

std::string MemoryLimits::text() const {
  if (limits_.empty()) return "";
  return (*std::ranges::min_element(limits_, {}, [](const auto& one) { return one->left(); }))->text();
}

}  // namespace tutti
