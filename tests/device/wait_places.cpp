#include "tests/device/wait_places.h"

#include <dlfcn.h>
#include <execinfo.h>

#include <array>
#include <mutex>
#include <set>
#include <sstream>
#include <string_view>

namespace tutti::test_device {

namespace {

struct Places {
  std::mutex mutex;
  std::set<std::string> seen;
  std::string out;
};

Places& places() {
  static Places all;
  return all;
}

// Of the object file: "libtutti.so+0x1f30". "" if nobody knows.
std::string name_of(const void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return "";
  const std::string_view file(info.dli_fname);
  std::ostringstream name;
  name << file.substr(file.rfind('/') + 1) << "+0x" << std::hex
       << static_cast<const char*>(address) - static_cast<const char*>(info.dli_fbase);
  return name.str();
}

// The two nearest callers outside of this library; "" if libtorch is the nearest.
std::string callers() {
  std::array<void*, 16> frames{};
  const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
  std::string text;
  for (int frame = 0, found = 0; frame < count && found < 2; ++frame) {
    const std::string name = name_of(frames[static_cast<std::size_t>(frame)]);
    if (name.starts_with("libtutti_test_device")) continue;
    if (found == 0 && (name.starts_with("libtorch") || name.starts_with("libc10"))) return "";
    text += " " + name;
    ++found;
  }
  return text;
}

}  // namespace

bool left_out(const char* waits) {
  const std::string at = callers();
  if (at.empty()) return false;
  const std::lock_guard lock(places().mutex);
  const std::string& place = *places().seen.insert(waits + at).first;
  return place == places().out;
}

std::vector<std::string> wait_places() {
  const std::lock_guard lock(places().mutex);
  return {places().seen.begin(), places().seen.end()};
}

void leave_out(const std::string& place) {
  const std::lock_guard lock(places().mutex);
  places().out = place;
}

}  // namespace tutti::test_device
