#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/process/command_output.h"

namespace tutti {

// The output of a command, from its start to its end, as lines or as bytes. Errors are UserErrors with the
// command's name: a failure, or a line that is too long.
class CommandBytes {
 public:
  static constexpr std::size_t kMostLine = std::size_t{256} << 20;

  explicit CommandBytes(const std::string& command);

  // The next line, without its line break; nullopt at the end. Lasts until the next call.
  std::optional<std::string_view> line();
  // True if line() need not wait.
  bool has_line() const { return line_end() != std::string_view::npos; }
  // The next bytes, fewer at the end. Last until the next call.
  std::span<const std::byte> take(uint64_t count);

 private:
  std::string_view unread() const { return std::string_view(buffer_).substr(begin_); }
  std::size_t line_end() const;  // in unread()
  // False at the end of a command that has not failed.
  bool fill();

  std::string name_;  // in errors
  CommandOutput output_;
  std::string buffer_;
  std::size_t begin_ = 0;             // of what has not been taken
  mutable std::size_t searched_ = 0;  // of unread() without a line break
  bool ended_ = false;
};

}  // namespace tutti
