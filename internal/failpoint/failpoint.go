// Package failpoint marks the places where a test may kill or stop the process.
//
// The code that keeps state calls Hit or HitFile before and after each durable step. In the program that people install
// both do nothing: the compiler removes the calls and the names. With the build tag "failpoint" they call
// internal/testing/faultinject, which knows the points and what happens at each.
//
// Nothing else belongs in this package, because every package that keeps state imports it.
package failpoint
