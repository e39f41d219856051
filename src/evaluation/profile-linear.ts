// How a cost grows: ordinary least squares y = c_0 + sum_j c_j x_j, and where two such lines cross.

export interface LinearFit {
  readonly intercept: number;
  /** One per variable, in the unit of y per unit of x. */
  readonly slopes: readonly number[];
  /** Share of the variance explained; null where y does not vary. */
  readonly r2: number | null;
  readonly n: number;
}

/** Solves the normal equations. Null where the points do not determine the coefficients (too few, or variables that move as one). */
export function fitLinear(points: readonly (readonly number[])[], values: readonly number[]): LinearFit | null {
  const rows = points.map((point) => [1, ...point]);
  const width = rows[0]?.length ?? 0;
  if (rows.length < width || width === 0) return null;
  // Columns on one scale, so that a singular system can be told from one in small units.
  const scales = Array.from({ length: width }, (_, j) => Math.max(...rows.map((row) => Math.abs(row[j] ?? 0))) || 1);
  const scaled = rows.map((row) => row.map((x, j) => x / (scales[j] ?? 1)));
  const matrix = Array.from({ length: width }, (_, i) => [
    ...Array.from({ length: width }, (__, j) => dot(column(scaled, i), column(scaled, j))),
    dot(column(scaled, i), values),
  ]);
  const solution = solve(matrix);
  if (solution === null) return null;
  const [intercept = 0, ...slopes] = solution.map((coefficient, j) => coefficient / (scales[j] ?? 1));
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const total = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const residual = rows.reduce((sum, row, i) => sum + ((values[i] ?? 0) - dot(row, [intercept, ...slopes])) ** 2, 0);
  return { intercept, slopes, r2: total === 0 ? null : 1 - residual / total, n: rows.length };
}

/** The x at which fixed + perUnit * x reaches `cost`: below it the line is cheaper. Null where the line does not rise. */
export function breakEven(cost: number, fixed: number, perUnit: number): number | null {
  return perUnit > 0 ? (cost - fixed) / perUnit : null;
}

/** Gaussian elimination with partial pivoting on an augmented matrix, which is changed; null where it is singular. */
function solve(matrix: number[][]): number[] | null {
  const size = matrix.length;
  for (let i = 0; i < size; i++) {
    const pivot = matrix.slice(i).reduce((best, row) => (Math.abs(row[i] ?? 0) > Math.abs(best[i] ?? 0) ? row : best));
    if (Math.abs(pivot[i] ?? 0) < 1e-9) return null;
    const place = matrix.indexOf(pivot);
    [matrix[i], matrix[place]] = [pivot, matrix[i] as number[]];
    for (const row of matrix) {
      if (row === pivot) continue;
      const factor = (row[i] ?? 0) / (pivot[i] ?? 1);
      for (let j = i; j <= size; j++) row[j] = (row[j] ?? 0) - factor * (pivot[j] ?? 0);
    }
  }
  return matrix.map((row, i) => (row[size] ?? 0) / (row[i] ?? 1));
}

function column(rows: readonly (readonly number[])[], j: number): number[] {
  return rows.map((row) => row[j] ?? 0);
}

function dot(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, value, i) => sum + value * (b[i] ?? 0), 0);
}
