import type { RunSettings } from '../../host/run-settings.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { drainForecaster, type NodeForecast } from '../forecast/forecast.ts';
import { type DrainForecastDocument, drainForecastDocument } from '../forecast/forecast-document.ts';
import { readClusterView } from '../forecast/read-cluster-view.ts';
import { obstacleOf } from '../node-hold.ts';
import { rulesOfPolicy } from './while-drained.ts';

/** The forecasts of a run that drains nodes before it changes them. */
export interface RunForecast {
  /** The drain of a node, as if the others were in service. */
  readonly ofNode: (name: string) => NodeForecast;
  /** The drains of all nodes of the run. */
  readonly ofRun: (names: readonly string[]) => DrainForecastDocument;
}

/** Reads the cluster once for all forecasts of a run. @throws errors of `Cluster` */
export async function readRunForecast(
  cluster: Cluster,
  policy: NonNullable<RunSettings['drain']>,
  own: Parameters<typeof obstacleOf>[1],
): Promise<RunForecast> {
  const view = await readClusterView(cluster);
  const forecaster = drainForecaster(view);
  const forecast = (names: readonly string[]) => forecaster(names, rulesOfPolicy(policy), policy.timeoutMs);
  const objects = new Map(view.nodes.map((node) => [node.metadata.name, node]));
  const whyHeld = ({ node, state }: NodeForecast): string | null => {
    const object = objects.get(node);
    const obstacle = object === undefined ? null : obstacleOf(object, own);
    // A run waits for the cordon of another run, and changes a node that its operator has drained.
    if (obstacle === null || obstacle.kind === 'held' || (obstacle.kind === 'cordoned' && state === 'drained')) return null;
    return obstacle.why;
  };
  return {
    ofNode: (name) => forecast([name]).nodes[0] as NodeForecast,
    ofRun: (names) => {
      const found = forecast(names);
      const held = found.nodes.flatMap((node) => {
        const why = whyHeld(node);
        return why === null ? [] : [[node.node, why] as const];
      });
      return drainForecastDocument(found, new Map(held));
    },
  };
}
