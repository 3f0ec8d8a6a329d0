#include "data/streams/command_bytes.h"

#include <algorithm>

#include "recipe/command_keys.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr std::size_t kReadBytes = std::size_t{256} << 10;

}  // namespace

CommandBytes::CommandBytes(const std::string& command) : name_(command_name(command)), output_(command) {}

std::size_t CommandBytes::line_end() const {
  const std::size_t end = unread().find('\n', searched_);
  if (end == std::string_view::npos) searched_ = unread().size();
  return end;
}

bool CommandBytes::fill() {
  if (ended_) return false;
  buffer_.erase(0, begin_);
  begin_ = 0;
  const std::size_t before = buffer_.size();
  buffer_.resize(before + kReadBytes);
  const std::size_t count = output_.read(std::span(buffer_).subspan(before));
  buffer_.resize(before + count);
  if (count > 0) return true;
  ended_ = true;
  if (const std::string failure = output_.failure(); !failure.empty())
    throw UserError({name_}, "the command failed with " + failure);
  return false;
}

std::optional<std::string_view> CommandBytes::line() {
  std::size_t end = line_end();
  while (end == std::string_view::npos && fill()) {
    end = line_end();
    if (end == std::string_view::npos && unread().size() > kMostLine)
      throw UserError({name_}, "wrote a line of more than 256 MiB");
  }
  std::string_view line = unread().substr(0, end);
  if (end == std::string_view::npos && line.empty()) return std::nullopt;
  begin_ += line.size() + (end == std::string_view::npos ? 0 : 1);
  searched_ = 0;
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::span<const std::byte> CommandBytes::take(uint64_t count) {
  while (unread().size() < count && fill()) {
  }
  const std::string_view bytes = unread().substr(0, count);
  begin_ += bytes.size();
  return std::as_bytes(std::span(bytes));
}

}  // namespace tutti
