#include "models/exported/python_functions.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "runtime/error.h"

namespace tutti::exported {
namespace {

using Arguments = std::vector<c10::IValue>;

double real(const c10::IValue& value) { return value.toScalar().toDouble(); }
bool are_whole(const Arguments& arguments) {
  return std::ranges::all_of(arguments, [](const c10::IValue& one) { return one.isInt() || one.isBool(); });
}
int64_t whole(const c10::IValue& value) { return value.toScalar().toLong(); }

// Toward minus infinity, as Python's //.
int64_t floor_divided(int64_t a, int64_t b) {
  if (b == 0) throw UserError("its numbers are divided by zero");
  if (b == -1)
    return static_cast<int64_t>(-static_cast<uint64_t>(a));  // the processor stops at the least one
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

template <class OfIntegers, class OfReals>
PythonFunction two_numbers(OfIntegers integers, OfReals reals) {
  return [=](const Arguments& given) -> c10::IValue {
    if (are_whole(given)) return integers(whole(given.at(0)), whole(given.at(1)));
    return reals(real(given.at(0)), real(given.at(1)));
  };
}

template <class Same>
PythonFunction two_numbers(Same same) {
  return two_numbers(same, same);
}

template <class Function>
PythonFunction to_integer(Function function) {
  return [=](const Arguments& given) -> c10::IValue {
    return static_cast<int64_t>(function(real(given.at(0))));
  };
}

std::map<std::string, PythonFunction> all() {
  std::map<std::string, PythonFunction> by_name;
  by_name["_operator.add"] = two_numbers([](auto a, auto b) { return a + b; });
  by_name["_operator.sub"] = two_numbers([](auto a, auto b) { return a - b; });
  by_name["_operator.mul"] = two_numbers([](auto a, auto b) { return a * b; });
  by_name["_operator.truediv"] = [](const Arguments& given) -> c10::IValue {
    return real(given.at(0)) / real(given.at(1));
  };
  by_name["_operator.floordiv"] =
      two_numbers(floor_divided, [](double a, double b) { return std::floor(a / b); });
  by_name["_operator.mod"] = two_numbers([](int64_t a, int64_t b) { return a - b * floor_divided(a, b); },
                                         [](double a, double b) { return a - b * std::floor(a / b); });
  by_name["_operator.pow"] =
      two_numbers([](int64_t a, int64_t b) { return static_cast<int64_t>(std::llround(std::pow(a, b))); },
                  [](double a, double b) { return std::pow(a, b); });
  by_name["_operator.neg"] = [](const Arguments& given) -> c10::IValue {
    if (are_whole(given)) return -whole(given.at(0));
    return -real(given.at(0));
  };
  by_name["_operator.pos"] = [](const Arguments& given) { return given.at(0); };
  by_name["_operator.eq"] = two_numbers([](auto a, auto b) { return a == b; });
  by_name["_operator.ne"] = two_numbers([](auto a, auto b) { return a != b; });
  by_name["_operator.lt"] = two_numbers([](auto a, auto b) { return a < b; });
  by_name["_operator.le"] = two_numbers([](auto a, auto b) { return a <= b; });
  by_name["_operator.gt"] = two_numbers([](auto a, auto b) { return a > b; });
  by_name["_operator.ge"] = two_numbers([](auto a, auto b) { return a >= b; });
  by_name["_operator.and_"] =
      two_numbers([](int64_t a, int64_t b) { return a & b; }, [](double, double) { return 0.0; });
  by_name["_operator.or_"] =
      two_numbers([](int64_t a, int64_t b) { return a | b; }, [](double, double) { return 0.0; });
  by_name["torch.sym_max"] = two_numbers([](auto a, auto b) { return std::max(a, b); });
  by_name["torch.sym_min"] = two_numbers([](auto a, auto b) { return std::min(a, b); });
  by_name["torch.sym_float"] = [](const Arguments& given) -> c10::IValue { return real(given.at(0)); };
  by_name["torch.sym_int"] = to_integer([](double x) { return std::trunc(x); });
  by_name["torch.sym_not"] = [](const Arguments& given) -> c10::IValue { return whole(given.at(0)) == 0; };
  by_name["math.ceil"] = to_integer([](double x) { return std::ceil(x); });
  by_name["math.floor"] = to_integer([](double x) { return std::floor(x); });
  by_name["math.trunc"] = to_integer([](double x) { return std::trunc(x); });
  by_name["builtins.round"] = by_name["round"] = to_integer([](double x) { return std::nearbyint(x); });
  by_name["math.sqrt"] = by_name["torch._sym_sqrt"] = [](const Arguments& given) -> c10::IValue {
    return std::sqrt(real(given.at(0)));
  };
  return by_name;
}

}  // namespace

PythonFunction python_function(const std::string& name) {
  static const std::map<std::string, PythonFunction> functions = all();
  const auto function = functions.find(name);
  return function == functions.end() ? PythonFunction() : function->second;
}

}  // namespace tutti::exported
