package file

// RotateAt sets how large a rotated file is at least, in bytes.
func (s *Store) RotateAt(size int64) { s.rotateAt = size }

// OpenOn opens a store on the given Files, such as a simulated file system.
var OpenOn = openOn
