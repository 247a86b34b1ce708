# The usual loop: a file for each task, and a result file. usage: loop.sh TASKS RESULTS COMMAND
inotifywait -m -e moved_to --format %f "$1" | while read -r name; do
	id=$(jq -r .task_id "$1/$name") && "$3" && echo ok >"$2/$id"
done
