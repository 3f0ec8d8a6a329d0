#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "training/time/time.h"

namespace tutti {

// "20EP" is {"20", kEpoch}; nothing where no unit ends the text or nothing stands before it.
std::optional<std::pair<std::string_view, TimeUnit>> split_unit(std::string_view text);

// Seconds of "1h20m40s", whose parts may be left out; nothing for any other text.
std::optional<int> clock_seconds(std::string_view text);

// The same as Composer's Time.from_timedelta reads it, which first fills the text up with "0h", "0m" and, at
// the end, "0s": "5" is "0h0m50s".
std::optional<int> composer_clock_seconds(std::string_view text);

// As Python's float(): blanks around, a sign, single underscores between digits, inf, nan.
std::optional<double> python_float(std::string_view text);

// As Python's repr() of a float: the shortest text that reads back, "0.5", "2.0", "1e-05", "nan".
std::string python_repr(double value);

std::string whole_text(double value);  // "100000000000000000000", all digits

// Digits of any script (in UTF-8) as ASCII ones, and any blank as a space: what Python's float() begins with.
std::string ascii_number(std::string_view text);

// The seconds in one of a unit that the wall clock is logged in: "seconds", "minutes", "hours", "days".
// Throws UserError for any other.
double seconds_in(const std::string& time_unit);

}  // namespace tutti
