#pragma once

#include <string>
#include <variant>

#include "recipe/time/timestamp.h"

namespace tutti {

// A value of the Python expressions in time.json; std::monostate is None. Every operation fails (UserError)
// where Composer's raises.
using PythonValue =
    std::variant<std::monostate, bool, int64_t, double, std::string, Time, Timestamp, TimeUnit>;

PythonValue add(const PythonValue& a, const PythonValue& b);
PythonValue subtract(const PythonValue& a, const PythonValue& b);
PythonValue multiply(const PythonValue& a, const PythonValue& b);
PythonValue divide(const PythonValue& a, const PythonValue& b);
PythonValue modulo(const PythonValue& a, const PythonValue& b);
PythonValue floor_divide(const PythonValue& a, const PythonValue& b);
PythonValue power(const PythonValue& a, const PythonValue& b);
PythonValue negate(const PythonValue& a);
PythonValue absolute(const PythonValue& a);
PythonValue rounded(const PythonValue& a);  // to a whole number, halves to the even one
bool truth(const PythonValue& a);
// `comparison` is "<", "<=", ">", ">=", "==" or "!=".
bool compare(const PythonValue& a, const std::string& comparison, const PythonValue& b);

// Composer's TimeUnit by value or name, in any case: "ba", "EPOCH".
TimeUnit unit_of(const PythonValue& value);
const char* name_of(TimeUnit unit);  // "BATCH"
// Time(value, unit), Time.from_input(value, unit), Time.from_input(value).
Time make_time(const PythonValue& value, TimeUnit unit);
Time time_from_input(const PythonValue& value, TimeUnit unit);
Time time_from_input(const PythonValue& value);
PythonValue number_of(const Time& time);  // its value: an int, of a duration a float
std::string repr(const PythonValue& value);
std::string str(const PythonValue& value);

}  // namespace tutti
