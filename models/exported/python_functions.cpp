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
PythonFunction of_two(OfIntegers integers, OfReals reals) {
  return [=](const Arguments& given) -> c10::IValue {
    if (are_whole(given)) return integers(whole(given.at(0)), whole(given.at(1)));
    return reals(real(given.at(0)), real(given.at(1)));
  };
}

template <class Same>
PythonFunction of_two(Same same) {
  return of_two(same, same);
}

template <class Function>
PythonFunction to_integer(Function function) {
  return [=](const Arguments& given) -> c10::IValue {
    return static_cast<int64_t>(function(real(given.at(0))));
  };
}

std::map<std::string, PythonFunction> all() {
  std::map<std::string, PythonFunction> found;
  found["_operator.add"] = of_two([](auto a, auto b) { return a + b; });
  found["_operator.sub"] = of_two([](auto a, auto b) { return a - b; });
  found["_operator.mul"] = of_two([](auto a, auto b) { return a * b; });
  found["_operator.truediv"] = [](const Arguments& given) -> c10::IValue {
    return real(given.at(0)) / real(given.at(1));
  };
  found["_operator.floordiv"] = of_two(floor_divided, [](double a, double b) { return std::floor(a / b); });
  found["_operator.mod"] = of_two([](int64_t a, int64_t b) { return a - b * floor_divided(a, b); },
                                  [](double a, double b) { return a - b * std::floor(a / b); });
  found["_operator.pow"] =
      of_two([](int64_t a, int64_t b) { return static_cast<int64_t>(std::llround(std::pow(a, b))); },
             [](double a, double b) { return std::pow(a, b); });
  found["_operator.neg"] = [](const Arguments& given) -> c10::IValue {
    if (are_whole(given)) return -whole(given.at(0));
    return -real(given.at(0));
  };
  found["_operator.pos"] = [](const Arguments& given) { return given.at(0); };
  found["_operator.eq"] = of_two([](auto a, auto b) { return a == b; });
  found["_operator.ne"] = of_two([](auto a, auto b) { return a != b; });
  found["_operator.lt"] = of_two([](auto a, auto b) { return a < b; });
  found["_operator.le"] = of_two([](auto a, auto b) { return a <= b; });
  found["_operator.gt"] = of_two([](auto a, auto b) { return a > b; });
  found["_operator.ge"] = of_two([](auto a, auto b) { return a >= b; });
  found["_operator.and_"] =
      of_two([](int64_t a, int64_t b) { return a & b; }, [](double, double) { return 0.0; });
  found["_operator.or_"] =
      of_two([](int64_t a, int64_t b) { return a | b; }, [](double, double) { return 0.0; });
  found["torch.sym_max"] = of_two([](auto a, auto b) { return std::max(a, b); });
  found["torch.sym_min"] = of_two([](auto a, auto b) { return std::min(a, b); });
  found["torch.sym_float"] = [](const Arguments& given) -> c10::IValue { return real(given.at(0)); };
  found["torch.sym_int"] = to_integer([](double x) { return std::trunc(x); });
  found["torch.sym_not"] = [](const Arguments& given) -> c10::IValue { return whole(given.at(0)) == 0; };
  found["math.ceil"] = to_integer([](double x) { return std::ceil(x); });
  found["math.floor"] = to_integer([](double x) { return std::floor(x); });
  found["math.trunc"] = to_integer([](double x) { return std::trunc(x); });
  found["builtins.round"] = found["round"] = to_integer([](double x) { return std::nearbyint(x); });
  found["math.sqrt"] = found["torch._sym_sqrt"] = [](const Arguments& given) -> c10::IValue {
    return std::sqrt(real(given.at(0)));
  };
  return found;
}

}  // namespace

PythonFunction python_function(const std::string& name) {
  static const std::map<std::string, PythonFunction> functions = all();
  const auto found = functions.find(name);
  return found == functions.end() ? PythonFunction() : found->second;
}

}  // namespace tutti::exported
