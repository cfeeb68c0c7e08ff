package file

// RotateAt sets how large a rotated file is at least, in bytes.
func (s *Store) RotateAt(size int64) { s.rotateAt = size }
