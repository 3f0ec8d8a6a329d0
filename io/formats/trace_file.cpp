#include "io/formats/trace_file.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>

#include "io/json/json_text.h"

namespace tutti {
namespace {

constexpr std::size_t kTraceBufferBytes = std::size_t{1} << 20;
constexpr int64_t kNanosecondsPerMicrosecond = 1000;

bool is_plain(char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; }

}  // namespace

TraceFile::TraceFile(Disk& disk, const std::string& path)
    : fresh_(std::make_unique<FreshFile>(disk, path)), file_(disk.open(fresh_->name(), /*truncate=*/true)) {
  buffer_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
}

void TraceFile::name_process(int64_t pid, const std::string& name) {
  name_event({pid, pid}, "process_name", name);
}

void TraceFile::name_thread(Track track, std::string_view name) { name_event(track, "thread_name", name); }

void TraceFile::begin(Track track, std::string_view name, Nanoseconds time, const Args& values) {
  named_event('B', track, name, time);
  args(values);
  close_event();
}

void TraceFile::end(Track track, Nanoseconds time) {
  timed_event('E', track, time);
  close_event();
}

void TraceFile::slice(Track track, std::string_view name, Nanoseconds time, Nanoseconds duration) {
  named_event('X', track, name, time);
  microseconds("dur", duration);
  close_event();
}

void TraceFile::count(Track track, std::string_view name, Nanoseconds time, double value) {
  named_event('C', track, name, time);
  char number[32];
  std::snprintf(number, sizeof number, "%.9g", value);
  buffer_.append(",\"args\":{\"value\":").append(number) += '}';
  close_event();
}

void TraceFile::mark(Track track, std::string_view name, Nanoseconds time, const Args& values) {
  named_event('i', track, name, time);
  buffer_ += ",\"s\":\"t\"";
  args(values);
  close_event();
}

void TraceFile::mark_process(Track track, std::string_view name, Nanoseconds time) {
  named_event('i', track, name, time);
  buffer_ += ",\"s\":\"p\"";
  close_event();
}

void TraceFile::leave(Track from, std::string_view name, Nanoseconds time, int64_t arrow) {
  arrow_event('s', from, name, time, arrow);
}

void TraceFile::arrive(Track to, std::string_view name, Nanoseconds time, int64_t arrow) {
  arrow_event('f', to, name, time, arrow);
}

void TraceFile::close() {
  buffer_ += "\n]}\n";
  flush();
  file_->close();
  fresh_->commit();
}

void TraceFile::open_event(char phase, Track track) {
  buffer_ += first_ ? "\n{\"ph\":\"" : ",\n{\"ph\":\"";
  first_ = false;
  buffer_ += phase;
  buffer_ += "\",\"pid\":" + std::to_string(track.pid) + ",\"tid\":" + std::to_string(track.tid);
}

void TraceFile::timed_event(char phase, Track track, Nanoseconds time) {
  open_event(phase, track);
  microseconds("ts", time);
}

// The format's unit.
void TraceFile::microseconds(std::string_view key, Nanoseconds value) {
  char fraction[8];
  std::snprintf(fraction, sizeof fraction, ".%03d",
                static_cast<int>(value.count() % kNanosecondsPerMicrosecond));
  buffer_.append(",\"").append(key) += "\":";
  buffer_ += std::to_string(value.count() / kNanosecondsPerMicrosecond) + fraction;
}

void TraceFile::named_event(char phase, Track track, std::string_view name, Nanoseconds time) {
  timed_event(phase, track, time);
  buffer_ += ",\"cat\":\"tutti\",\"name\":";
  text(name);
}

void TraceFile::name_event(Track track, std::string_view what, std::string_view name) {
  open_event('M', track);
  buffer_ += ",\"name\":";
  text(what);
  args({{"name", name}});
  close_event();
}

// "bp": "e" binds the arrow's end to the enclosing slice instead of the next one.
void TraceFile::arrow_event(char phase, Track track, std::string_view name, Nanoseconds time, int64_t arrow) {
  named_event(phase, track, name, time);
  buffer_ += ",\"id\":" + std::to_string(arrow);
  if (phase == 'f') buffer_ += ",\"bp\":\"e\"";
  close_event();
}

void TraceFile::args(const Args& values) {
  if (values.empty()) return;
  const char* separator = ",\"args\":{";
  for (const auto& [key, value] : values) {
    buffer_ += separator;
    text(key);
    buffer_ += ':';
    if (const auto* number = std::get_if<int64_t>(&value))
      buffer_ += std::to_string(*number);
    else
      text(std::get<std::string_view>(value));
    separator = ",";
  }
  buffer_ += '}';
}

void TraceFile::text(std::string_view text) {
  if (std::ranges::all_of(text, is_plain)) {
    (buffer_ += '"').append(text) += '"';
  } else {
    const auto replace = nlohmann::json::error_handler_t::replace;
    buffer_ += without_raw_controls(nlohmann::json(text).dump(-1, ' ', false, replace));
  }
}

void TraceFile::close_event() {
  buffer_ += '}';
  if (buffer_.size() >= kTraceBufferBytes) flush();
}

void TraceFile::flush() {
  file_->append(std::as_bytes(std::span(buffer_)));
  buffer_.clear();
}

}  // namespace tutti
