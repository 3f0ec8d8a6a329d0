#pragma once

#include <string>

namespace tutti {

// The seconds in one of a unit that the wall clock is logged in: "seconds", "minutes", "hours", "days".
// Throws UserError for any other.
double seconds_in(const std::string& time_unit);

}  // namespace tutti
