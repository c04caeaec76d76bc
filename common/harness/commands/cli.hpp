/// @file
/// The command line of the programs: list, run, bench, compare.
#pragma once

namespace convladder {

/// Runs one command. In a program that holds a single stage, the stage may be left out, and so may "run". Every error
/// is one line on standard error.
/// @return exit status: 0 all right; 1 wrong result or fault; 2 unusable arguments, input or machine; 3 refused
int run_program(int count, char** arguments);

}  // namespace convladder
