import { parseQuantity, quantityValue } from '../../base/text/quantity.ts';

/** The amount of a resource: CPUs in thousandths, others in their unit; 0 for a value that is not a quantity. */
export function resourceAmount(resource: string, value: unknown): number {
  const quantity = typeof value === 'string' || typeof value === 'number' ? parseQuantity(String(value)) : null;
  if (quantity === null) return 0;
  return Number(quantityValue(resource === 'cpu' ? { ...quantity, scale: quantity.scale - 3 } : quantity));
}
