// The API server double with stand-in nodes, in a process of its own, so that it does not add to the figures of the controller.
import { setMaxListeners } from 'node:events';
import { startApiServer } from '../../lab/api-server/server.ts';
import { systemClock } from '../../src/base/adapters/clock-system.ts';
import { benchCluster, runNodes } from './world.ts';

const nodes = Number(process.argv[2]);
const { cluster, proxy } = await benchCluster(nodes, systemClock);
const api = await startApiServer({ store: cluster.store });
for (let i = 0; i < nodes; i++) api.proxyNode(`n${i}`, proxy);
process.send?.(api.adminKubeconfig());
process.once('disconnect', () => process.exit());
const { signal } = new AbortController();
// Each stand-in agent waits with this signal.
setMaxListeners(0, signal);
await runNodes(cluster, nodes, systemClock, signal);
