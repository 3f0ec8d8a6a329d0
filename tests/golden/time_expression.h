#pragma once

#include "tests/golden/python_value.h"

namespace tutti {

// The value of a Python expression of time.json: Time(20,"ba")*0.775, ts.get("tok"), repr(Time(1,"ep")). `ts`
// is what that name stands for. Throws UserError where Composer raises, and std::logic_error where the
// expression is of a form that is not known here.
PythonValue evaluate(const std::string& expression, const Timestamp& ts = {});

}  // namespace tutti
