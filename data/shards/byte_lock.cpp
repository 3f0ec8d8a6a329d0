#include "data/shards/byte_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/error.h"

namespace tutti {
namespace {

[[noreturn]] void fail_lock(const std::string& path, int descriptor, const char* what) {
  const std::string problem = std::strerror(errno);
  if (descriptor >= 0) ::close(descriptor);
  throw OperatingError({path}, std::string("cannot be ") + what + ": " + problem);
}

}  // namespace

ByteLock::ByteLock(const std::string& path, int64_t byte, Mode mode, bool waits)
    : descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666)) {
  if (descriptor_ < 0) fail_lock(path, -1, "opened");
  struct flock lock {};
  lock.l_type = mode == Mode::kShared ? F_RDLCK : F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  int result = 0;
  do {
    result = ::fcntl(descriptor_, waits ? F_OFD_SETLKW : F_OFD_SETLK, &lock);
  } while (result < 0 && errno == EINTR);
  holds_ = result == 0;
  if (!holds_ && (waits || (errno != EAGAIN && errno != EACCES))) fail_lock(path, descriptor_, "locked");
}

ByteLock::ByteLock(const std::string& path, int64_t byte, Mode mode) : ByteLock(path, byte, mode, true) {}

ByteLock ByteLock::attempt(const std::string& path, int64_t byte) {
  return {path, byte, Mode::kExclusive, false};
}

ByteLock::ByteLock(ByteLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), holds_(std::exchange(other.holds_, false)) {}

ByteLock::~ByteLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace tutti
