import type { DrainForecast, NodeForecast } from './forecast.ts';

/** A forecast as printed with `-o json`: a stable interface. */
export interface DrainForecastDocument extends DrainForecast {
  readonly apiVersion: 'kubeletadm.dev/v1alpha1';
  readonly kind: 'DrainForecast';
  /** `held`: why the node is skipped, as a clause; null: it is not. */
  readonly nodes: readonly (NodeForecast & { readonly held: string | null })[];
}

/** @param held why nodes are skipped, by their names */
export function drainForecastDocument(forecast: DrainForecast, held: ReadonlyMap<string, string>): DrainForecastDocument {
  const nodes = forecast.nodes.map((node) => ({ ...node, held: held.get(node.node) ?? null }));
  return { apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'DrainForecast', ...forecast, nodes };
}
