#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tutti {

// Seconds of "1h20m40s", where parts are optional; nullopt for other texts.
std::optional<int> clock_seconds(std::string_view text);

// As Composer's Time.from_timedelta, which inserts missing "0h" and "0m", and appends a missing "0s": "5" is
// "0h0m50s".
std::optional<int> composer_clock_seconds(std::string_view text);

// As Python's float(): blanks around, a sign, single underscores between digits, inf, nan.
std::optional<double> python_float(std::string_view text);

// As Python's repr() of a float: the shortest text that reads back, "0.5", "2.0", "1e-05", "nan".
std::string python_repr(double value);

std::string whole_text(double value);  // "100000000000000000000", all digits

// Converts digits of any script (in UTF-8) to ASCII, and blanks to spaces, as Python's float() does first.
std::string ascii_number(std::string_view text);

// Seconds of a unit "seconds", "minutes", "hours" or "days", units of logged wall-clock times. Throws
// UserError for other texts.
double seconds_in(const std::string& time_unit);

}  // namespace tutti
