#!/usr/bin/env node
import { isMainThread } from 'node:worker_threads';
import { runCli } from './cli/run.ts';
import { runProcess } from './run-process.ts';
import { VERSION } from './version.ts';
import { createServices } from './wiring.ts';

if (isMainThread) runProcess((argv, environment) => runCli(argv, createServices(environment), VERSION));
else void import('./cli/adapters/validation-threads.ts').then(({ validateAsThread }) => validateAsThread());
