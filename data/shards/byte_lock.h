#pragma once

#include <cstdint>
#include <string>

namespace tutti {

// A lock on one byte of a file, which need not exist. Keeps out other threads and other processes of the
// host, until the object or its process ends.
class ByteLock {
 public:
  enum class Mode { kShared, kExclusive };

  // Waits for the lock. Throws OperatingError if the file cannot be opened, or cannot be locked.
  ByteLock(const std::string& path, int64_t byte, Mode mode);
  // Does not wait: holds() is false if another process holds the lock.
  static ByteLock attempt(const std::string& path, int64_t byte);
  ~ByteLock();
  ByteLock(ByteLock&& other) noexcept;
  ByteLock(const ByteLock&) = delete;
  ByteLock& operator=(const ByteLock&) = delete;

  bool holds() const { return holds_; }

 private:
  ByteLock(const std::string& path, int64_t byte, Mode mode, bool waits);

  int descriptor_;
  bool holds_ = false;
};

}  // namespace tutti
